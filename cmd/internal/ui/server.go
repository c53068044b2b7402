// Package ui serves the pages of runs to the browser of the user who started it: on the loopback, to who knows a random token, and
// only to read.
package ui

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quartet-sched/quartet/lab/report"
)

// A Server answers for a folder of runs, or for one run.
type Server struct {
	folder string
	token  string
	hosts  []string // names by which it may be asked, with the port
	watch  func(dir string) Watch
	paces  paces

	lock  sync.Mutex
	pages map[string]rendered
	hubs  map[string]*hub
}

type rendered struct {
	of   string // what the files were like
	page []byte
}

// mostPages is how many pages are kept.
const mostPages = 8

// New returns the server of a folder, to be asked at an address of the loopback. watch makes the source of a run that goes on.
func New(folder string, at net.Addr, watch func(dir string) Watch) (*Server, error) {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%v is not an address of the loopback", at)
	}
	s := &Server{paces: paces{usualPace, usualPagePace}, folder: folder, token: rand.Text(), watch: watch, pages: map[string]rendered{}, hubs: map[string]*hub{}}
	for _, host := range [...]string{"127.0.0.1", "localhost", "::1"} {
		s.hosts = append(s.hosts, net.JoinHostPort(host, strconv.Itoa(tcp.Port)))
	}
	return s, nil
}

// Address is what the user opens: it holds the token.
func (s *Server) Address() string { return "http://" + s.hosts[0] + "/?token=" + s.token }

// cookie is the name of the cookie that stands for the token; servers on other ports have others.
func (s *Server) cookie() string {
	_, port, _ := net.SplitHostPort(s.hosts[0]) // made by New
	return "quartet-" + port
}

// ServeHTTP answers who may ask, and refuses what another site sent.
func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !slices.Contains(s.hosts, q.Host):
		http.Error(w, "this host is not served", http.StatusMisdirectedRequest)
	case q.Header.Get("Origin") != "" && q.Header.Get("Origin") != "http://"+q.Host:
		http.Error(w, "no other site is served", http.StatusForbidden)
	case !slices.Contains([]string{"", "none", "same-origin"}, q.Header.Get("Sec-Fetch-Site")):
		http.Error(w, "no other site is served", http.StatusForbidden)
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "there is only to read here", http.StatusMethodNotAllowed)
	case s.same(q.URL.Query().Get("token")) && q.URL.Path == "/":
		http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: s.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, q, "/", http.StatusSeeOther)
	case !s.known(q):
		http.Error(w, "open the address that quartet ui printed", http.StatusUnauthorized)
	default:
		s.answer(w, q)
	}
}

func (s *Server) same(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
}

func (s *Server) known(q *http.Request) bool {
	c, err := q.Cookie(s.cookie())
	return err == nil && s.same(c.Value)
}

// index answers with the list of runs and studies, or leads to the page of the only run.
func (s *Server) index(w http.ResponseWriter, q *http.Request, entries []report.Entry) {
	if len(entries) == 1 && isRun(s.folder) {
		http.Redirect(w, q, "/"+entries[0].Link, http.StatusSeeOther)
		return
	}
	s.write(w, func(b *bytes.Buffer) error { return report.WriteIndex(b, filepath.Base(s.folder), entries) })
}

// answer answers a request of a known client.
func (s *Server) answer(w http.ResponseWriter, q *http.Request) {
	parts := strings.Split(strings.TrimPrefix(q.URL.Path, "/"), "/")
	entries := s.entries()
	if parts[0] == "" && len(parts) == 1 {
		s.index(w, q, entries)
		return
	}
	at := -1
	if len(parts) >= 2 { // what is asked for is looked up, never made into a path
		at = slices.IndexFunc(entries, func(e report.Entry) bool { return e.Name == parts[1] })
	}
	if at < 0 || len(parts) > 3 {
		http.NotFound(w, q)
		return
	}
	dir := s.dir(entries[at].Name)
	rest := ""
	if len(parts) == 3 {
		rest = parts[2]
	}
	switch place := parts[0] + "/" + rest; {
	case place == "run/" && entries[at].Live:
		defer s.sweep()
		s.live(w, q, dir)
	case place == "run/":
		s.page(w, dir)
	case place == "run/events":
		defer s.sweep()
		s.events(w, q, dir)
	case place == "run/job": // of a run that has just ended, too: the page says that nothing answers
		defer s.sweep()
		s.job(w, q, dir)
	default:
		http.NotFound(w, q)
	}
}

func (s *Server) dir(name string) string {
	if isRun(s.folder) {
		return s.folder
	}
	return filepath.Join(s.folder, name)
}

// isRun reports whether a folder holds a run or a study itself. A folder of such may have one of any name in it, such as "live".
func isRun(dir string) bool {
	for _, name := range [...]string{"manifest.json", "jobs.csv"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return report.IsStudy(dir) || report.Unended(dir) || isLive(dir)
}

// entries lists the runs and studies of the folder.
func (s *Server) entries() (list []report.Entry) {
	if isRun(s.folder) {
		name := s.folder
		if whole, err := filepath.Abs(name); err == nil { // "." has no name of its own
			name = whole
		}
		return []report.Entry{entry(filepath.Base(name), s.folder)}
	}
	found, err := os.ReadDir(s.folder)
	if err != nil {
		return nil
	}
	for _, f := range found {
		if dir := filepath.Join(s.folder, f.Name()); f.IsDir() && isRun(dir) {
			list = append(list, entry(f.Name(), dir))
		}
	}
	return list
}

func entry(name, dir string) report.Entry {
	path := escapedPath(name)
	e := report.Entry{Name: name, Kind: "run", Link: "run/" + path + "/"}
	switch {
	case report.IsStudy(dir):
		e.Kind = "study"
	case isLive(dir):
		e.Kind, e.Live = "running", true
	case hasSocket(dir):
		e.Kind = "was killed"
		e.Facts = report.FactsOf(dir)
	case report.Unended(dir):
		e.Kind = "has not ended"
		e.Facts = report.FactsOf(dir)
	default:
		e.Facts = report.FactsOf(dir)
	}
	return e
}

func (s *Server) write(w http.ResponseWriter, make func(*bytes.Buffer) error) {
	var page bytes.Buffer
	if err := make(&page); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // who asked may be gone
}

// page answers with the page of a run or a study, which is made anew when a file of it has changed.
func (s *Server) page(w http.ResponseWriter, dir string) {
	of := state(dir)
	s.lock.Lock()
	kept, ok := s.pages[dir]
	s.lock.Unlock()
	if !ok || kept.of != of {
		var page bytes.Buffer
		d, err := report.Read(dir, nil)
		if err == nil {
			err = d.Write(&page)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kept = rendered{of, page.Bytes()}
		s.lock.Lock()
		if len(s.pages) >= mostPages {
			clear(s.pages)
		}
		s.pages[dir] = kept
		s.lock.Unlock()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(kept.page) // who asked may be gone
}

// live answers with the page of a run that goes on.
func (s *Server) live(w http.ResponseWriter, q *http.Request, dir string) {
	page, err := s.hub(dir).live(q.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page) // who asked may be gone
}

// state tells sizes and times of the files in a folder.
func state(dir string) string {
	var b strings.Builder
	found, _ := os.ReadDir(dir) // an empty folder says so when it is read
	for _, f := range found {
		if info, err := f.Info(); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", f.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

func (s *Server) job(w http.ResponseWriter, q *http.Request, dir string) {
	details, err := s.hub(dir).watch.Job(q.Context(), q.URL.Query().Get("name"))
	if err != nil {
		details = &Details{Error: err.Error()}
	}
	text, err := json.Marshal(details)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // who asked may be gone
}

func (s *Server) hub(dir string) *hub {
	s.lock.Lock()
	defer s.lock.Unlock()
	h, known := s.hubs[dir]
	if !known {
		h = &hub{watch: s.watch(dir), dir: dir, paces: s.paces, viewers: map[chan []byte]bool{}}
		s.hubs[dir] = h
	}
	return h
}

// sweep lets the hubs go of runs that are over and that nobody looks at.
func (s *Server) sweep() {
	s.lock.Lock()
	hubs := maps.Clone(s.hubs)
	s.lock.Unlock()
	for dir, h := range hubs {
		if !h.idle() || isLive(dir) {
			continue
		}
		s.lock.Lock()
		if s.hubs[dir] == h && h.idle() {
			delete(s.hubs, dir)
		}
		s.lock.Unlock()
	}
}

// events sends what happens until who asked is gone.
func (s *Server) events(w http.ResponseWriter, q *http.Request, dir string) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	news, leave := s.hub(dir).join()
	defer leave()
	for {
		select {
		case <-q.Context().Done():
			return
		case text := <-news:
			if _, err := w.Write(text); err != nil || errors.Is(out.Flush(), http.ErrNotSupported) {
				return
			}
		}
	}
}
