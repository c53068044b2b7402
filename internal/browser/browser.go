// Package browser drives a headless Chromium from tests, through the pipes of its debugging protocol.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A Page is a tab of a browser that ends with the test.
type Page struct {
	t        testing.TB
	out      *os.File
	in       *bufio.Reader
	session  string
	id       int
	Console  []string // messages of the console, and errors
	Requests []string // addresses of what was asked for
}

// Open starts a browser of its own. It skips the test where there is none: QUARTET_CHROMIUM names one, or the path holds it.
func Open(t testing.TB) *Page {
	t.Helper()
	program := os.Getenv("QUARTET_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && program == "" {
			program = found
		}
	}
	if program == "" {
		t.Skip("no Chromium in PATH, and QUARTET_CHROMIUM names none; install chromium (make browser runs these tests)")
	}
	theirIn, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	c.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	p := &Page{t: t, out: out, in: bufio.NewReaderSize(in, 1<<20)}
	t.Cleanup(func() {
		_, _ = p.try("Browser.close", nil) // it ends before it answers
		_, _ = out.Close(), in.Close()
		stop := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		stop.Stop()
	})
	limit := time.AfterFunc(3*time.Minute, func() { _ = in.Close() })
	t.Cleanup(func() { limit.Stop() })
	target := struct{ TargetID string }{}
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	attached := struct{ SessionID string }{}
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		p.call(domain+".enable", nil, nil)
	}
	return p
}

type message struct {
	ID     int
	Method string
	Params struct {
		Request struct{ URL string }
		Entry   struct{ Level, Text, URL string }
		Type    string
		Args    []struct {
			Value       any
			Description string
		}
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	Result json.RawMessage
	Error  *struct{ Message string }
}

func (p *Page) try(method string, params any) (json.RawMessage, error) {
	p.id++
	ask := map[string]any{"id": p.id, "method": method}
	if params != nil {
		ask["params"] = params
	}
	if p.session != "" && method != "Browser.close" {
		ask["sessionId"] = p.session
	}
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	if _, err := p.out.Write(append(text, 0)); err != nil {
		return nil, err
	}
	for {
		line, err := p.in.ReadBytes(0)
		if err != nil {
			return nil, err
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			return nil, err
		}
		p.note(&m)
		if m.ID != p.id {
			continue
		}
		if m.Error != nil {
			return nil, errors.New(m.Error.Message)
		}
		return m.Result, nil
	}
}

func (p *Page) note(m *message) {
	switch m.Method {
	case "Network.requestWillBeSent":
		p.Requests = append(p.Requests, m.Params.Request.URL)
	case "Log.entryAdded":
		p.Console = append(p.Console, m.Params.Entry.Level+": "+m.Params.Entry.Text)
	case "Runtime.consoleAPICalled":
		p.Console = append(p.Console, fmt.Sprint(m.Params.Type, ": ", m.Params.Args))
	case "Runtime.exceptionThrown":
		d := m.Params.ExceptionDetails
		p.Console = append(p.Console, d.Text+" "+d.Exception.Description)
	}
}

func (p *Page) call(method string, params, to any) {
	p.t.Helper()
	result, err := p.try(method, params)
	if err == nil && to != nil {
		err = json.Unmarshal(result, to)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

// Size sets the window, in pixels of CSS, and whether the dark colours are asked for.
func (p *Page) Size(width, height int, dark bool) {
	p.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Go opens an address and waits until the page says that it is ready: with data-ready on its root element, whose value it returns.
func (p *Page) Go(url string) string {
	p.t.Helper()
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	for range 1200 {
		ready := ""
		if err := p.run("document.documentElement.dataset.ready || ''", &ready); err == nil && ready != "" {
			return ready
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.t.Fatalf("%s is not ready after 30 s; console: %q", url, p.Console)
	return ""
}

// Await waits until an expression is true in the page, which may be loading meanwhile.
func (p *Page) Await(what, expression string) {
	p.t.Helper()
	var err error
	for range 400 {
		is := false
		if err = p.run("!!("+expression+")", &is); is {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	text := ""
	_ = p.run("document.body.innerText", &text) // for the message
	p.t.Fatalf("%s never came: %v; console %q; the page says:\n%s", what, err, p.Console, text)
}

// Run evaluates JavaScript in the page, of a promise what it comes to.
func (p *Page) Run(script string, to any) {
	p.t.Helper()
	if err := p.run(script, to); err != nil {
		p.t.Fatalf("%.80s: %v", script, err)
	}
}

func (p *Page) run(script string, to any) error {
	text, err := p.try("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true})
	if err != nil {
		return err
	}
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return errors.New(r.ExceptionDetails.Exception.Description)
	}
	if to == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, to)
}

// Picture is the page as a PNG, whole or what the window shows.
func (p *Page) Picture(whole bool) []byte {
	p.t.Helper()
	var r struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// CheckAccess runs axe over the page, if QUARTET_AXE names the file of its script, and fails the test for what is serious.
func (p *Page) CheckAccess() {
	p.t.Helper()
	path := os.Getenv("QUARTET_AXE")
	if path == "" {
		return
	}
	script, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Run(string(script)+"; 0", nil)
	var found []string
	p.Run(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary).join(' | ')))`, &found)
	for _, f := range found {
		p.t.Errorf("axe: %s", f)
	}
}
