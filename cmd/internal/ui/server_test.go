package ui

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/lab/report"
)

// still is a scheduler that always says the same.
type still struct{}

func (still) State(context.Context) (*State, error) {
	return &State{Now: 5, Jobs: [][6]any{{"</script><img>", "running", "", 1, 0, "end in <b>"}}}, nil
}

func (still) Job(context.Context, string) (*Details, error) {
	return &Details{Facts: [][2]string{{"state", "running"}}}, nil
}

func (still) SoFar(context.Context) (*report.SoFar, error) {
	return &report.SoFar{NowSeconds: 5, Files: map[string][]byte{"jobs.csv": []byte("job,name,submit_s\n0,</script><img>,0\n")}}, nil
}

func served(t *testing.T) (*Server, string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"one/jobs.csv": "job,name,submit_s\n0,a,0\n", "a b&<i>/summary.json": "{}", "a b&<i>/jobs.csv": "job,name\n", "plain/note.txt": "no run", "secret": "no folder",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live := filepath.Join(folder, "live-one")
	if err := os.MkdirAll(filepath.Dir(Socket(live)), 0o755); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", Socket(live))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	s, err := New(folder, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4242}, func(string) Watch { return still{} })
	if err != nil {
		t.Fatal(err)
	}
	return s, folder
}

func TestOnlyItsUserIsServed(t *testing.T) {
	s, _ := served(t)
	for name, tc := range map[string]struct {
		method, path string
		headers      map[string]string
		unknown      bool
		want         int
		holds        string
	}{
		"list":              {path: "/", want: 200, holds: "a b&amp;&lt;i&gt;"},
		"run":               {path: "/run/one/", want: 200, holds: "One job"},
		"name with markup":  {path: "/run/a%20b&%3Ci%3E/", want: 200, holds: "The run has no jobs"},
		"live":              {path: "/run/live-one/", want: 200, holds: "connect-src"},
		"job":               {path: "/run/live-one/job?name=x", want: 200, holds: "running"},
		"no token":          {path: "/", unknown: true, want: 401},
		"wrong token":       {path: "/?token=x", unknown: true, want: 401},
		"token":             {path: "/?token=" + s.token, unknown: true, want: 303},
		"another host":      {path: "/", headers: map[string]string{"Host": "evil.example:4242"}, want: 421},
		"another port":      {path: "/", headers: map[string]string{"Host": "127.0.0.1:80"}, want: 421},
		"another origin":    {path: "/", headers: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"no origin":         {path: "/", headers: map[string]string{"Origin": "null"}, want: 403},
		"its origin":        {path: "/", headers: map[string]string{"Origin": "http://127.0.0.1:4242"}, want: 200},
		"cross-site":        {path: "/", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		"same site":         {path: "/", headers: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		"writing":           {method: http.MethodPost, path: "/", want: 405},
		"no run":            {path: "/run/plain/", want: 404},
		"way out":           {path: "/run/../secret", want: 404},
		"encoded way out":   {path: "/run/..%2fsecret/", want: 404},
		"nothing like this": {path: "/run/one/more/of", want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			q := httptest.NewRequest(method, "http://127.0.0.1:4242"+tc.path, nil)
			for k, v := range tc.headers {
				if q.Header.Set(k, v); k == "Host" {
					q.Host = v
				}
			}
			if !tc.unknown {
				q.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, q)
			if w.Code != tc.want || !strings.Contains(w.Body.String(), tc.holds) {
				t.Errorf("answer %d, want %d, with %q", w.Code, tc.want, tc.holds)
			}
			for _, header := range w.Result().Cookies() {
				if !header.HttpOnly || header.SameSite != http.SameSiteStrictMode {
					t.Errorf("cookie %v can be read or sent by others", header)
				}
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("other sites may read")
			}
		})
	}
}

func TestOnlyTheLoopbackIsServed(t *testing.T) {
	for _, ip := range []net.IP{net.IPv4zero, net.IPv4(10, 0, 0, 1), net.IPv6zero} {
		if _, err := New(t.TempDir(), &net.TCPAddr{IP: ip, Port: 1}, nil); err == nil {
			t.Errorf("%v is served", ip)
		}
	}
}

func TestEventsComeAndEnd(t *testing.T) {
	s, _ := served(t)
	server := httptest.NewServer(s)
	defer server.Close()
	s.hosts = []string{strings.TrimPrefix(server.URL, "http://")}
	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/run/live-one/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `data: {"now":5`) || strings.Contains(line, "<") {
		t.Errorf("event %q, %v", line, err)
	}
	leave()
}

func TestSlowViewerGetsTheLatest(t *testing.T) {
	h := &hub{watch: still{}, viewers: map[chan []byte]bool{}}
	news := make(chan []byte, 1)
	h.viewers[news] = true
	for now := range 3 {
		h.publish(t.Context(), &State{Now: float64(now)}, nil)
	}
	if text := string(<-news); !strings.Contains(text, `"now":2`) {
		t.Errorf("got %s", text)
	}
}

// asked is the answer of the server of a folder to its user.
func asked(t *testing.T, folder, path string) *httptest.ResponseRecorder {
	t.Helper()
	s, err := New(folder, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4242}, func(string) Watch { return still{} })
	if err != nil {
		t.Fatal(err)
	}
	q := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:4242"+path, nil)
	q.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	return w
}

// A run may have any name, and a folder of runs is one whatever their names are.
func TestFoldersOfRunsAreLists(t *testing.T) {
	for _, name := range []string{"live", "jobs.csv", "manifest.json"} {
		for file, text := range map[string]string{"jobs.csv": "job,name,submit_s\n0,a,0\n", "runs.csv": "run,scheduler,replicate,seed,offered_load,outcome\n"} {
			folder := t.TempDir()
			for path, text := range map[string]string{filepath.Join(name, file): text, "other/jobs.csv": "job,name,submit_s\n0,a,0\n"} {
				path = filepath.Join(folder, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w := asked(t, folder, "/")
			if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, `href="run/`+name+`/"`) || !strings.Contains(text, `href="run/other/"`) {
				t.Errorf("%s with %s: %d, and no list of both", name, file, w.Code)
			}
			if w := asked(t, folder, "/run/"+name+"/"); w.Code != http.StatusOK {
				t.Errorf("%s with %s: %d for its page", name, file, w.Code)
			}
		}
	}
}

// The folder of one run or study has its page in the place of a list.
func TestTheFolderOfARunIsItsPage(t *testing.T) {
	_, folder := served(t)
	t.Chdir(filepath.Join(folder, "one"))
	for dir, link := range map[string]string{
		filepath.Join(folder, "one"): "/run/one/", filepath.Join(folder, "one") + "/": "/run/one/", ".": "/run/one/", "../live-one": "/run/live-one/",
		"../a b&<i>": "/run/a%20b&%3Ci%3E/",
	} {
		w := asked(t, dir, "/")
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != link {
			t.Errorf("%s: %d to %q, want %q", dir, w.Code, got, link)
			continue
		}
		if page := asked(t, dir, link); page.Code != http.StatusOK {
			t.Errorf("%s: %d for its page", dir, page.Code)
		}
	}
	if w := asked(t, folder, "/"); w.Code != http.StatusOK {
		t.Errorf("%d for a folder of runs", w.Code)
	}
}

// A scheduler that is killed leaves its socket: its run does not go on, and what was kept to look at it is let go.
func TestARunWhoseSchedulerWasKilled(t *testing.T) {
	s, folder := served(t)
	get := func(ctx context.Context, path string) string {
		q := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.hosts[0]+path, nil)
		q.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.token})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		return w.Body.String()
	}
	dir := filepath.Join(folder, "dies")
	if err := os.MkdirAll(filepath.Dir(Socket(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".jobs.csv-1"), []byte("job,name,submit_s\n0,a,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: Socket(dir), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	socket.SetUnlinkOnClose(false)
	for _, path := range []string{"/run/dies/", "/run/dies/job?name=x", "/run/live-one/"} {
		get(t.Context(), path)
	}
	if len(s.hubs) != 2 || strings.Count(get(t.Context(), "/"), ">running<") != 2 {
		t.Fatalf("%d hubs of two runs that go on", len(s.hubs))
	}
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	list := get(t.Context(), "/")
	if strings.Count(list, ">running<") != 1 || strings.Count(list, "was killed") != 1 {
		t.Errorf("the list:\n%s", list)
	}
	if page := get(t.Context(), "/run/dies/"); strings.Contains(page, "connect-src 'self'") || !strings.Contains(page, "killed") {
		t.Errorf("the page of the killed run:\n%.2000s", page)
	}
	looks, leave := context.WithCancel(t.Context())
	leave()
	get(looks, "/run/dies/events")
	if s.hubs[dir] != nil || len(s.hubs) != 1 {
		t.Errorf("hubs %v", s.hubs)
	}
}
