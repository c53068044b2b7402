package syncbuffer

import (
	"strings"
	"sync"
	"testing"
)

func TestBufferLosesNothing(t *testing.T) {
	const writers, lines = 8, 100
	var b Buffer
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for range lines {
				_, _ = b.Write([]byte("whole line\n"))
				_ = b.String()
			}
		})
	}
	writing.Wait()
	if got := strings.Count(b.String(), "whole line\n"); got != writers*lines {
		t.Errorf("%d lines, want %d", got, writers*lines)
	}
}
