package mete

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete/breaker"
	"github.com/metehq/mete/quota"
)

// Outcome is what an attempt taught about the provider and about itself.
type Outcome struct {
	// Err is why the attempt failed; nil is success.
	Err error
	// Answered says that the provider took the call and did not push back.
	// It ends a pause for good.
	Answered bool
	// Throttled says that the provider pushed back because of load or quota,
	// and RetryAfter how long it asks to stay away, if Hinted. A hint without
	// a throttle delays only this call.
	Throttled  bool
	RetryAfter time.Duration
	Hinted     bool
	// Repeat says that the call may safely be made again.
	Repeat bool
	// Free is a failure outside the retry budget: nothing was sent, or the
	// provider refused before it did anything.
	Free bool
	// Terminal says that the provider's quota is used up for long (the money is
	// spent, the day's contingent is gone), for everybody who uses this gate.
	// It stops the provider: see ErrExhausted. What concerns only this request
	// is not Terminal, just not to be repeated.
	Terminal bool
	// Quotas are what the response shows of the provider's quotas. Config.Learn
	// says what becomes of them.
	Quotas []quota.Quota
}

// teaches reports whether there is more in an outcome than that the provider
// works.
func (o *Outcome) teaches() bool { return o.Err != nil || o.Throttled || o.Quotas != nil }

// result is what an outcome says about whether the provider works. A throttle
// teaches a rate, and the end of the caller's context nothing.
func result(o *Outcome, ctx context.Context) breaker.Result {
	switch {
	case o.Answered || o.Err == nil && !o.Throttled:
		return breaker.Success
	case o.Throttled || ctx.Err() != nil || refusal(o.Err):
		return breaker.Ignored
	}
	return breaker.Failure
}

// refusal reports whether an error came from a gate and not from a provider.
func refusal(err error) bool {
	_, rejected := errors.AsType[*Rejected](err)
	return rejected || errors.Is(err, ErrNested) || errors.Is(err, ErrInvalidCall)
}

// outcome reads the error of a plain function that has failed.
func outcome(ctx context.Context, err error) Outcome {
	if t, ok := errors.AsType[*Throttled](err); ok {
		return Outcome{Err: err, Throttled: true, RetryAfter: t.RetryAfter, Hinted: t.RetryAfter > 0, Repeat: !t.Terminal, Free: true, Terminal: t.Terminal}
	}
	if _, ok := errors.AsType[*permanent](err); ok {
		return Outcome{Err: err, Answered: true}
	}
	if refusal(err) || ctx.Err() != nil {
		return Outcome{Err: err}
	}
	return Outcome{Err: err, Repeat: true, Free: !Sent(err)}
}
