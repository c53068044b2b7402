package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"
)

var (
	//go:embed assets/uplot/uPlot.iife.min.js
	plotScript string
	//go:embed assets/uplot/uPlot.min.css
	plotStyle string
	//go:embed assets/uplot/LICENSE
	plotLicence string
	//go:embed assets/style.css
	ownStyle string
	//go:embed assets/data.js
	dataScript string
	//go:embed assets/timeline.js
	timelineScript string
	//go:embed assets/run.js
	runScript string
	//go:embed assets/several.js
	severalScript string
	//go:embed assets/figures.js
	figuresScript string
	//go:embed assets/study.js
	studyScript string
	//go:embed assets/live.js
	liveScript string
	//go:embed assets/list.js
	listScript string
	//go:embed assets/start.js
	startScript string
	//go:embed assets/page.html
	pageText string
)

// pages makes a page out of its parts. To parse it takes longer than most commands need to start.
var pages = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// A page is one HTML file: what a browser shows without scripts, and the data for the charts.
type page struct {
	Title    string
	Policy   string // of content security
	Style    template.HTML
	Scripts  template.HTML
	Data     template.HTML
	Notes    []string // what is wrong with the input
	Sections []section
	Connects bool // it asks the server that it came from
}

// A section is a part of a page under a heading.
type section struct {
	ID, Title string
	Text      []string
	Cards     []fact
	Facts     []fact
	List      []string
	Tables    []grid
	Canvas    bool
	Search    bool
	Filter    bool     // of the rows of its tables
	Plots     []string // ids of the places of charts
	Pre       string
	More      string // what Pre is folded under
}

type fact struct{ Name, Value string }

// A grid is a table with a caption; texts are the columns of words.
type grid struct {
	Caption string
	Head    []string
	Rows    [][]cell
	Words   bool // the cells are words, not numbers
}

type cell struct {
	Text, Class, Link string
}

func plain(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	return row
}

// write makes the file. The policy allows the scripts and styles that it holds, by their digests, and nothing else.
func (p *page) write(w io.Writer, data *pack, scripts ...string) error {
	encoded, err := data.encode()
	if err != nil {
		return err
	}
	p.assemble(scripts...)
	p.Data = template.HTML(`<script type="application/octet-stream" id="data">` + encoded + `</script>`)
	var out bytes.Buffer
	if err := pages().Execute(&out, p); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	_, err = w.Write(out.Bytes())
	return err
}

// assemble puts style and scripts together.
func (p *page) assemble(scripts ...string) {
	style := plotStyle + "\n" + ownStyle
	p.Style = template.HTML("<style>" + style + "</style>")
	script := "/*! uPlot 1.6.32, " + strings.Join(strings.Fields(plotLicence), " ") + " */\n" + plotScript + "\n" + strings.Join(scripts, "\n")
	p.Scripts = template.HTML("<script>" + script + "</script>")
	p.Policy = fmt.Sprintf("default-src 'none'; img-src data:; script-src %s; style-src %s; base-uri 'none'; form-action 'none'", digestOf(script), digestOf(style))
	if p.Connects {
		p.Policy += "; connect-src 'self'"
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
