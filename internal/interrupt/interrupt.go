// Package interrupt ends waits that the system offers no way to end, such as opening a pipe that nobody writes.
package interrupt

import "context"

// Call returns what a function does, or the error of the context when that ends first. The function is then left to itself, and
// what it returns is lost: it must change nothing that others use.
func Call[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
