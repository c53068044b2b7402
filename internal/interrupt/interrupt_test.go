package interrupt

import (
	"context"
	"errors"
	"testing"
)

func TestCall(t *testing.T) {
	broken := errors.New("broken")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		ctx  context.Context
		do   func() (int, error)
		want int
		err  error
	}{
		"a value":                  {t.Context(), func() (int, error) { return 7, nil }, 7, nil},
		"an error":                 {t.Context(), func() (int, error) { return 0, broken }, 0, broken},
		"ended before":             {ended, func() (int, error) { return 7, nil }, 0, context.Canceled},
		"a value besides an error": {t.Context(), func() (int, error) { return 7, broken }, 7, broken},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Call(tc.ctx, tc.do); got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Call() = %d, %v, want %d, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestCallIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan int)
	defer close(never)
	_, err := Call(ctx, func() (int, error) {
		cancel()
		return <-never, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Call() = %v, want %v", err, context.Canceled)
	}
}
