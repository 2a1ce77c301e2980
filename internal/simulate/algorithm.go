package simulate

import "github.com/metehq/mete/adaptive"

// Algorithms are all that are compared.
func Algorithms() []Algorithm {
	return []Algorithm{
		{Knee, newOurs(adaptive.Config{})},
		{"aimd", func(s Setting) limiter { return &perSample{newAIMD(s)} }},
		{"aimd-win", func(s Setting) limiter { return &perSample{&windowed{rule: newAIMD(s)}} }},
		{"vegas", func(s Setting) limiter { return &perSample{newVegas(s)} }},
		{"vegas-win", func(s Setting) limiter { return &perSample{&windowed{rule: newVegas(s)}} }},
		{"gradient2", func(s Setting) limiter { return &perSample{&windowed{rule: newGradient2(s)}} }},
		{"correlation", func(s Setting) limiter { return &perSample{newCorrelation(s)} }},
		{"arc", func(s Setting) limiter { return &perSample{newARC(s)} }},
	}
}
