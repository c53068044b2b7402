package report

import (
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quartet-sched/quartet/internal/browser"
)

var (
	look    = flag.String("report.look", "", "folder for pictures of the pages that tests open")
	pagesOf = flag.String("report.pages", "", "comma-separated files of pages to open besides")
)

// TestGivenPages opens pages that were made before, and measures them.
func TestGivenPages(t *testing.T) {
	if *pagesOf == "" {
		t.Skip("-report.pages names no page: go test ./lab/report -run GivenPages -report.pages FILE,FILE")
	}
	for path := range strings.SplitSeq(*pagesOf, ",") {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			opened(t, path)
		})
	}
}

// TestPageInBrowser draws a run whose texts are hostile, and the smallest ones.
func TestPageInBrowser(t *testing.T) {
	evil := small()
	for _, name := range []string{"jobs.csv", "decisions.jsonl"} {
		quoted := strings.ReplaceAll(hostile, `"`, "")
		if name == "jobs.csv" {
			quoted = `"` + quoted + `"`
		}
		evil[name].Data = []byte(strings.ReplaceAll(string(evil[name].Data), "first", quoted))
	}
	for name, all := range map[string]fstest.MapFS{
		"small": small(), "full": full(), "hostile": evil, "only jobs": files(map[string]string{"jobs.csv": jobsHeader}),
	} {
		t.Run(name, func(t *testing.T) {
			_, page := pageOf(t, all)
			path := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
				t.Fatal(err)
			}
			p := opened(t, path)
			images := 0
			if p.Run("document.images.length", &images); images > 0 {
				t.Error("a name became an image")
			}
		})
	}
}

// TestStudyInBrowser draws a study with all its figures: what is solid and what is hollow both leave marks.
func TestStudyInBrowser(t *testing.T) {
	_, page := studyPage(t, published(t))
	path := filepath.Join(t.TempDir(), "study", "report.html")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	p := opened(t, path)
	var charts struct {
		Figures, Empty int
		Solid, Hollow  bool
	}
	p.Run(`(() => {
		const inked = c => { // beside grey axes
			const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
			for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) return true;
			return false;
		};
		const all = [...document.querySelectorAll('figure')], legend = kind => document.querySelector('.legend i.' + kind) != null;
		return { figures: all.length, empty: all.filter(f => !inked(f.querySelector('canvas'))).length, solid: legend('dot'), hollow: legend('ring') };
	})()`, &charts)
	if charts.Figures != 13 || charts.Empty > 0 || !charts.Solid || !charts.Hollow {
		t.Errorf("%+v, want 13 figures, none empty, with solid and hollow marks", charts)
	}
	if cut := cutOff(p); len(cut) > 0 { // all changes are below 0
		t.Errorf("what does not lie within its axes: %q", cut)
	}
}

// cutOff lists the charts of a page whose points or ends of intervals lie outside their axes, or half of their marks: an end of an
// axis is at 0, where a share is whole, or beyond all of them.
func cutOff(p *browser.Page) (titles []string) {
	p.Run(`[...document.querySelectorAll('figure')].filter(f => {
		const u = f.querySelector('.plot').plot, { min, max } = u.scales.y, values = u.data.slice(1).flatMap(list => [...list]).filter(v => v != null);
		const low = Math.min(...values), high = Math.max(...values);
		return !(min < max && min <= low && high <= max && (min === 0 || min < low) && (max === 0 || max === 1 || high < max));
	}).map(f => f.querySelector('figcaption').textContent)`, &titles)
	return titles
}

// Axes hold what is drawn, whatever its sign and size.
func TestAxesHoldWhatIsDrawn(t *testing.T) {
	var figures []Figure
	for name, values := range map[string][]float64{
		"below 0": {-.5, -.4, -.3}, "far below": {-5e6, -4e6}, "around 0": {-.2, .1}, "above": {.1, .3}, "0 and below": {-.1, 0}, "one": {7},
		"one below": {-7}, "only 0": {0, 0}, "equal": {-.2, -.2}, "small": {1e-9, 2e-9}, "small below": {-2e-9, -1e-9},
	} {
		f := Figure{Place: placeChanges, Name: fileName(name), Title: name, X: Plain, Y: Share, Lines: []Line{{Label: "a", Points: true}}}
		for i, v := range values {
			l := &f.Lines[0]
			f.Ticks = append(f.Ticks, fileName(name))
			l.X, l.Y = append(l.X, float64(i)), append(l.Y, v)
			l.Low, l.High = append(l.Low, v-math.Abs(v)/4), append(l.High, v+math.Abs(v)/4)
		}
		figures = append(figures, f)
	}
	data := newPack()
	data.value("kind", "study")
	packFigures(data, figures)
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	page := &page{Title: "axes", Sections: []section{{ID: "changed", Title: "Changes", Plots: []string{placeChanges}}}}
	if err := errors.Join(page.write(f, data, dataScript, figuresScript, studyScript, startScript), f.Close()); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t)
	p.Size(1400, 900, false)
	p.Go("file://" + path)
	drawn := 0
	if p.Run("document.querySelectorAll('figure').length", &drawn); drawn != len(figures) {
		t.Errorf("%d figures are drawn, want %d", drawn, len(figures))
	}
	if cut := cutOff(p); len(cut) > 0 {
		t.Errorf("what does not lie within its axes: %q", cut)
	}
}

// opened opens a page in several sizes: it must draw without a request, a message or a barrier.
func opened(t *testing.T, path string) *browser.Page {
	t.Helper()
	p := browser.Open(t)
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"wide", 1400, 900, false}, {"phone", 375, 800, false}, {"dark", 1400, 900, true}, {"huge", 3840, 2160, false}} {
		p.Size(size.width, size.height, size.dark)
		ready := p.Go("file://" + path)
		t.Logf("%s: ready after %s ms", size.name, ready)
		if ready == "failed" {
			why := ""
			p.Run("document.getElementById('failed').textContent", &why)
			t.Errorf("%s: %s", size.name, why)
		}
		wide := 0
		if p.Run("document.documentElement.scrollWidth", &wide); wide > size.width {
			t.Errorf("%s: the page is %d pixels wide in a window of %d", size.name, wide, size.width)
		}
		if *look != "" {
			name := filepath.Base(filepath.Dir(path)) + "-" + size.name + ".png"
			if err := os.WriteFile(filepath.Join(*look, name), p.Picture(true), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if size.name != "huge" {
			p.CheckAccess()
		}
	}
	others := slices.DeleteFunc(slices.Clone(p.Requests), func(url string) bool { return url == "file://"+path || strings.HasPrefix(url, "data:") })
	if len(others) > 0 {
		t.Errorf("the page asks for %q", others)
	}
	if len(p.Console) > 0 {
		t.Errorf("console: %q", p.Console)
	}
	return p
}
