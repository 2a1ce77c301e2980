package simulate

// Algorithms are all that are compared.
func Algorithms() []Algorithm {
	return []Algorithm{
		{"aimd", func(s Setting) limiter { return &perSample{newAIMD(s)} }},
		{"aimd-win", func(s Setting) limiter { return &perSample{&windowed{rule: newAIMD(s)}} }},
		{"vegas", func(s Setting) limiter { return &perSample{newVegas(s)} }},
		{"vegas-win", func(s Setting) limiter { return &perSample{&windowed{rule: newVegas(s)}} }},
		{"gradient2", func(s Setting) limiter { return &perSample{&windowed{rule: newGradient2(s)}} }},
	}
}
