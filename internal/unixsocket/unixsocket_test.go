package unixsocket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestListen(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	for range 2 { // the second time one that nobody serves any more is there
		l, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := folder(t)
	deep := filepath.Join(dir, strings.Repeat("x", 100))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"file": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	served := filepath.Join(dir, "served")
	l, err := Listen(served)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cases := map[string]struct{ path, want string }{
		"a file":         {filepath.Join(dir, "file"), "the file is not a socket"},
		"a served one":   {served, "another process serves it"},
		"no folder":      {filepath.Join(dir, "no", "s"), "no such file or directory"},
		"a long path":    {filepath.Join(deep, "s"), "too long for a socket; choose a folder with a shorter one"},
		"a symbolic one": {filepath.Join(dir, "link"), "the file is not a socket"},
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := Listen(tc.path)
			if err == nil {
				_ = l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Listen = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestLongestPath(t *testing.T) {
	dir := folder(t)
	fill := longestPath - len(filepath.Join(dir, "x", madeIn, madeName)) + 1
	for over, want := range map[int]bool{0: true, 1: false} {
		deep := filepath.Join(dir, strings.Repeat("x", fill+over))
		if err := os.Mkdir(deep, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(filepath.Join(deep, "s"))
		if (err == nil) != want {
			t.Errorf("%d bytes over: %v", over, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	if _, err := Dial(t.Context(), strings.Repeat("x", longestPath+1)); err == nil || !strings.Contains(err.Error(), "1 bytes too long") {
		t.Errorf("Dial = %v", err)
	}
}

func TestTrusted(t *testing.T) {
	cases := map[string]struct {
		user, self int
		want       bool
	}{
		"oneself":            {1000, 1000, true},
		"root":               {0, 1000, true},
		"another":            {1001, 1000, false},
		"another, for root":  {1000, 0, false},
		"root, for himself":  {0, 0, true},
		"nobody in the list": {-1, 1000, false},
	}
	for name, tc := range cases {
		if err := trusted(tc.user, tc.self); (err == nil) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGuardLetsOneselfThrough(t *testing.T) {
	path := filepath.Join(folder(t), "s.sock")
	plain, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l := Guard(plain, nil)
	done := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.Close()
		}
		done <- err
		_, err = l.Accept()
		done <- err
	}()
	conn, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener: %v", err)
	}
}
