package host

import "testing"

func TestLockForgetsWhatItHolds(t *testing.T) {
	l := Lock{Plugins: []Entry{{Name: "a"}, {Name: "b"}}}
	if l.remove("c") || len(l.Plugins) != 2 {
		t.Errorf("forgot a plugin that is not there: %v left", l.Plugins)
	}
	if !l.remove("a") || len(l.Plugins) != 1 || l.Plugins[0].Name != "b" {
		t.Errorf("%v left, want b", l.Plugins)
	}
}
