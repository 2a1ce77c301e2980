package simulate

import "time"

// call is one attempt, from the permit to the last that is known of it: the
// provider may work on after the client has given up.
type call struct {
	client     int32
	generation uint32
	holders    int8 // the client's time-out, and the provider
	answered   bool
	outcome    outcome
	ticket     ticket
	retryAt    time.Duration // a 429 said so, 0 if it did not
}

// timeout ends the wait for one call. All wait equally long, so they are in order.
type timeout struct {
	at         time.Duration
	call       int32
	generation uint32
}

// calls holds those that are not over, and gives their places to new ones.
type calls struct {
	all      []call
	free     []int32
	timeouts line[timeout]
}

func (c *calls) get(v call, deadline time.Duration) int32 {
	var n int32
	if last := len(c.free) - 1; last >= 0 {
		n = c.free[last]
		c.free = c.free[:last]
		v.generation = c.all[n].generation + 1
		c.all[n] = v
	} else {
		n = int32(len(c.all))
		c.all = append(c.all, v)
	}
	c.all[n].holders = 2
	c.timeouts.push(timeout{deadline, n, c.all[n].generation})
	return n
}

// release is one holder's end: the time-out has passed, or the provider is done.
func (c *calls) release(n int32) {
	if c.all[n].holders--; c.all[n].holders == 0 {
		c.free = append(c.free, n)
	}
}

func (c *calls) nextTimeout() (timeout, bool) {
	if c.timeouts.len() == 0 {
		return timeout{}, false
	}
	return c.timeouts.first(), true
}
