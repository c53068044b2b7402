package twin

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Each does something for all numbers below n, on so many processors at most, and returns the error of the lowest number that failed. All are done whatever fails.
func Each(n, processors int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, max(processors, 1))
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = Caught(func() error { return do(i) })
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Caught does something, and makes an error of a panic. In a future policies meet states that the run never had: what they break there is no harm to the run.
func Caught(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("a panic in a future: %v\n%s", cause, debug.Stack())
		}
	}()
	return do()
}
