package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quartet-sched/quartet/core"
)

// stopped is a clock that is put forward by hand.
type stopped struct{ at time.Time }

func (c *stopped) Now() time.Time                     { return c.at }
func (*stopped) After(time.Duration) <-chan time.Time { return nil }

// What an API server says while it restarts passes, also that rights lack, but not for ever.
func TestTroubleThatPasses(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", nil)
	strange := apierrors.NewUnauthorized("who are you")
	for name, tc := range map[string]struct {
		said   []error // 20 s apart; nil for a call that worked
		passes bool
	}{
		"once":                      {[]error{denied}, true},
		"for some time":             {[]error{denied, strange, denied}, true},
		"for a minute":              {[]error{denied, denied, strange, denied}, false},
		"again and again":           {[]error{denied, denied, nil, denied, denied, nil, denied, denied}, true},
		"an hour after it worked":   {[]error{nil, nil, nil, nil, denied}, true},
		"it is down":                {[]error{apierrors.NewInternalError(errors.New("etcd"))}, true},
		"it is down for long":       {[]error{denied, errors.New("refused"), errors.New("refused"), errors.New("refused")}, true},
		"the object makes no sense": {[]error{apierrors.NewInvalid(schema.GroupKind{}, "a", nil)}, false},
		"nobody waits for it":       {[]error{context.Canceled}, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &stopped{at: time.Unix(1e9, 0)}
			b := &Backend{clock: clock}
			var got error
			for _, err := range tc.said {
				got = b.trouble(err)
				clock.at = clock.at.Add(20 * time.Second)
			}
			last := tc.said[len(tc.said)-1]
			if _, passes := errors.AsType[*core.Unavailable](got); passes != tc.passes || !errors.Is(got, last) {
				t.Errorf("%v is made %v, want that it passes: %v", last, got, tc.passes)
			}
		})
	}
}
