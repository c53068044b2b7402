package host

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestReadHandshake(t *testing.T) {
	certificate := Certificate(t)
	good := "1|1|unix|/tmp/s|grpc|" + certificate
	broken := errors.New("broken pipe")
	for name, tc := range map[string]struct {
		text  string
		then  error // of the stream, after the text
		fails error
		want  string // the network and place, or a part of the error
	}{
		"over a socket":       {good + "\nmore", nil, nil, "unix /tmp/s"},
		"over TCP":            {"1|1|tcp|127.0.0.1:7|grpc|" + certificate + "\n", nil, nil, "tcp 127.0.0.1:7"},
		"padded":              {good + "==\n", nil, nil, "unix /tmp/s"},
		"with blanks":         {" " + good + "\r\n", nil, nil, "unix /tmp/s"},
		"fields to come":      {good + "|true|new\n", nil, nil, "unix /tmp/s"},
		"ended in its line":   {good, nil, nil, "unix /tmp/s"},
		"nothing":             {"", nil, errNoPlugin, "without a word there"},
		"an empty line":       {"\n", nil, errNoPlugin, `: ""`},
		"words":               {"hello\n", nil, errNoPlugin, `"hello"`},
		"four fields":         {"1|1|unix|/tmp/s\n", nil, errNoPlugin, "/tmp/s"},
		"the longest line":    {strings.Repeat("x", longestHandshake) + "\n", nil, errNoPlugin, `: "xxx`},
		"a longer line":       {strings.Repeat("x", longestHandshake+1) + "\n", nil, errNoPlugin, "its first line is longer than 16384 bytes"},
		"a line without end":  {strings.Repeat("x", longestHandshake+1), nil, errNoPlugin, "its first line is longer than 16384 bytes"},
		"a stream that fails": {"1|1|", broken, broken, "broken pipe"},
		"which fails at once": {"", broken, broken, "broken pipe"},
		"another handshake":   {"2" + good[1:] + "\n", nil, errProtocol, `handshake "2", ours is 1`},
		"no handshake":        {"x" + good[1:] + "\n", nil, errProtocol, `handshake "x", ours is 1`},
		"protocol 0":          {"1|0" + good[3:] + "\n", nil, errProtocol, `version "0"`},
		"protocol 2":          {"1|2" + good[3:] + "\n", nil, errProtocol, `version "2"`},
		"no protocol":         {"1|one" + good[3:] + "\n", nil, errProtocol, `version "one"`},
		"over a pipe":         {"1|1|pipe|/tmp/s|grpc|" + certificate + "\n", nil, errProtocol, "grpc over pipe, must be grpc over unix or tcp"},
		"netrpc":              {"1|1|unix|/tmp/s|netrpc|" + certificate + "\n", nil, errProtocol, "netrpc over unix, must be grpc over unix or tcp"},
		"netrpc over TCP":     {"1|1|tcp|/tmp/s|netrpc|" + certificate + "\n", nil, errProtocol, "netrpc over tcp, must be grpc over unix or tcp"},
		"no certificate":      {"1|1|unix|/tmp/s|grpc\n", nil, errProtocol, "no certificate in its handshake"},
		"an empty one":        {"1|1|unix|/tmp/s|grpc|\n", nil, errProtocol, "no certificate in its handshake"},
		"no base64":           {"1|1|unix|/tmp/s|grpc|?\n", nil, errProtocol, "its certificate: illegal base64"},
		"half a certificate":  {"1|1|unix|/tmp/s|grpc|" + certificate[:80] + "\n", nil, errProtocol, "its certificate: x509"},
	} {
		t.Run(name, func(t *testing.T) {
			stream := io.Reader(strings.NewReader(tc.text))
			if tc.then != nil {
				stream = io.MultiReader(stream, iotest.ErrReader(tc.then))
			}
			at, err := readHandshake(bufio.NewReader(stream))
			if !errors.Is(err, tc.fails) || (err == nil) != (tc.fails == nil) {
				t.Fatalf("error %v, want %v", err, tc.fails)
			}
			switch {
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("error %v, want %q in it", err, tc.want)
			case err == nil && (at.network+" "+at.place != tc.want || at.certificate == nil):
				t.Errorf("%s at %s, certificate %v; want %s", at.network, at.place, at.certificate, tc.want)
			}
		})
	}
}

// Bytes after the handshake are left to whoever reads the stream next.
func TestWhatFollowsTheHandshakeIsLeft(t *testing.T) {
	stream := bufio.NewReader(strings.NewReader("1|1|unix|/tmp/s|grpc|" + Certificate(t) + "\na word"))
	if _, err := readHandshake(stream); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(stream); err != nil || string(rest) != "a word" {
		t.Errorf("left %q, error %v", rest, err)
	}
}

// A plugin sees the variables that are meant for it, and those only that are set.
func TestEnvironmentOfAPlugin(t *testing.T) {
	for _, name := range environment {
		t.Setenv(name, "x")
	}
	t.Setenv("TZ", "")
	if err := os.Unsetenv("LANG"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET", "s")
	t.Setenv("LICENCE", "l")
	got := Binary{Environment: []string{"LICENCE", "ABSENT_HERE"}}.environment()
	want := []string{"PATH=x", "HOME=x", "LC_ALL=x", "TZ=", "TMPDIR=x", "GOMAXPROCS=x", "PYTHONPATH=x", "VIRTUAL_ENV=x", "LICENCE=l"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMissingModule(t *testing.T) {
	for name, tc := range map[string]struct{ words, module, remedy string }{
		"a package":                  {"ModuleNotFoundError: No module named 'numpy'", "numpy", "run `py -m pip install numpy`"},
		"a part of one":              {"ModuleNotFoundError: No module named 'numpy.linalg'", "numpy.linalg", "run `py -m pip install numpy`"},
		"a package of another name":  {"ModuleNotFoundError: No module named 'yaml'", "yaml", "run `py -m pip install pyyaml`"},
		"the SDK":                    {"ModuleNotFoundError: No module named 'quartet_plugin'", "quartet_plugin", "run `py -m pip install ./plugins/python` in a checkout of Quartet"},
		"another error":              {"ImportError: no", "", ""},
		"nothing":                    {"", "", ""},
		"words that only mention it": {"caught ModuleNotFoundError: No module named 'numpy'", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			module := missingModule(tc.words)
			if module != tc.module {
				t.Fatalf("%q, want %q", module, tc.module)
			}
			if got := howToInstall(module, "py"); module != "" && got != tc.remedy {
				t.Errorf("%q, want %q", got, tc.remedy)
			}
		})
	}
}
