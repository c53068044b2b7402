package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// unpacked reads back what a page carries. What is not known is NaN.
func unpacked(t *testing.T, page string) (columns map[string][]float64, values map[string]json.RawMessage) {
	t.Helper()
	_, rest, _ := strings.Cut(page, `id="data">`)
	text, _, found := strings.Cut(rest, "</script>")
	packed, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil {
		t.Fatal("the page carries no data", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	length := binary.LittleEndian.Uint32(all)
	var index struct {
		Columns map[string]struct {
			At, N int
			Scale float64
			Delta bool
		}
		Values map[string]json.RawMessage
	}
	if err := json.Unmarshal(all[4:4+length], &index); err != nil {
		t.Fatal(err)
	}
	columns = map[string][]float64{}
	for name, c := range index.Columns {
		if at := int(4+length) + c.At; at%4 != 0 {
			t.Errorf("column %s begins at %d, which is no multiple of 4", name, at)
		}
		list, sum := make([]float64, c.N), uint32(0)
		for i := range list {
			bits := binary.LittleEndian.Uint32(all[int(4+length)+c.At+4*i:])
			switch {
			case c.Scale == 0:
				list[i] = float64(math.Float32frombits(bits))
			case c.Delta:
				sum += bits
				list[i] = float64(sum) * c.Scale
			case bits == missing:
				list[i] = math.NaN()
			default:
				list[i] = float64(bits) * c.Scale
			}
		}
		columns[name] = list
	}
	return columns, index.Values
}

// carried reads back what a page carries, column by column.
func carried(t *testing.T, page string) (column func(string) []float64, values map[string]json.RawMessage) {
	t.Helper()
	columns, values := unpacked(t, page)
	return func(name string) []float64 {
		list, known := columns[name]
		if !known {
			t.Fatalf("the page has no column %q", name)
		}
		return list
	}, values
}

// published is the folder of a study with published figures and files of runs.
func published(t *testing.T) fstest.MapFS {
	t.Helper()
	all := files(map[string]string{
		"study.yaml": "version: 1\naxes: {scheduler: [{name: fifo}, {name: pollux}], load: [{name: '1'}, {name: '0.5', with: {scheduler: fifo}}]}\n",
		"runs.csv": "run,scheduler,load,replicate,seed,offered_load,outcome,jct_seconds_mean\n" +
			"r1,fifo,1,1,1,0.4,completed,200\nr2,fifo,0.5,1,1,0.2,completed,150\nr3,pollux,1,1,1,0.4,completed,100\n",
		"stats.csv": "metric,load,scheduler,baseline,n,mean,baseline_mean,change,t_low,t_high,bca_low,bca_high,ratio_of_means,wins,ties,wilcoxon_p,holm_p,looks,method\n" +
			"jct_seconds.mean,1,pollux,fifo,5,100,200,-0.5,-0.625,-0.375,,,,,,,0.01,1,paired\n" +
			"jct_seconds.mean,all,pollux,fifo,5,100,200,-0.5,-0.625,-0.375,,,,,,,0.01,1,paired\n",
		"warnings.csv": "run,scheduler,load,replicate,kind,message\n",
		"published.csv": "figure,metric,scheduler,load,runs,published,ours,difference\n" +
			"Table 2,jct_seconds.mean,fifo,1,1,250,200,-0.2\nTable 2,jct_seconds.mean,pollux,1,1,80,100,0.25\n" +
			"Figure 8,jct_seconds.mean,fifo,0.5,1,125,150,0.2\nFigure 8,jct_seconds.mean,fifo,1,1,250,200,-0.2\nFigure 8,jct_seconds.mean,pollux,1,1,80,,\n",
	})
	for name, text := range map[string]string{
		"jobs.csv.gz":       "run,job,jct_s\nr1,0,100\nr1,1,300\nr3,0,\nr3,1,100\nr2,0,7\n",
		"fairness.csv.gz":   "run,job,rho\nr1,0,0.5\nr3,0,2\n",
		"usage.csv.gz":      "run,at_s,devices_used,efficiency,waiting,running,pending\nr1,0,4,,0,2,3\nr1,60.5,0,0.5,1,1,0\nr1,95,0,,0,0,0\nr2,0,9,1,9,9,9\nr3,0,8,0.25,0,1,0\nr3,30,0,,0,0,0\n",
		"timeline.csv.gz":   "run,job,start_s,end_s,replicas,batch_per_device,accumulation_steps\nr1,0,0,10,1,,\nr1,1,0,20,2,32,1\nr1,1,30,90,4,32,0\nr3,1,5,25,1,64,0\n",
		"efficiency.csv.gz": "run,job,at_s,batch,efficiency,goodput\nr1,1,0,128,1,0\nr1,0,0,9,1,0\nr1,1,20,,,\nr1,1,30,256,0.5,7\nr1,1,60,256,0.75,7\nr2,1,0,9,0.25,0\nr1,1,90,,,\n",
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := io.WriteString(z, text)
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: b.Bytes()}
	}
	return all
}

func studyPage(t *testing.T, all fstest.MapFS) (*Study, string) {
	t.Helper()
	s, err := ReadStudyFS(all, "studies/published")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := WriteStudy(&page, s); err != nil {
		t.Fatal(err)
	}
	return s, page.String()
}

// The points and curves that a page of a study carries are those of its files.
func TestPageCarriesTheFiguresOfAStudy(t *testing.T) {
	s, page := studyPage(t, published(t))
	column, values := carried(t, page)
	var figures []struct {
		Place, Title string
		Ticks        []string
		Lines        []struct {
			Label, Key   string
			Band, Hollow bool
		}
	}
	if err := json.Unmarshal(values["figures"], &figures); err != nil {
		t.Fatal(err)
	}
	type points struct {
		X, Y, Low, High []float64
		Ticks           []string
	}
	got := map[string]points{}
	for _, f := range figures {
		for _, l := range f.Lines {
			p := points{X: column(l.Key + ".x"), Y: column(l.Key + ".y"), Ticks: f.Ticks}
			if l.Band {
				p.Low, p.High = column(l.Key+".low"), column(l.Key+".high")
			}
			got[f.Title+": "+l.Label] = p
		}
	}
	nan := math.NaN()
	want := map[string]points{
		"Table 2, jct_seconds.mean; one workload each: no interval: ours":      {X: []float64{0, 1}, Y: []float64{200, 100}, Ticks: []string{"fifo", "pollux"}},
		"Table 2, jct_seconds.mean; one workload each: no interval: published": {X: []float64{0, 1}, Y: []float64{250, 80}, Ticks: []string{"fifo", "pollux"}},

		"Figure 8, jct_seconds.mean; one workload each: no interval: fifo, ours":        {X: []float64{-0.125, 0.875}, Y: []float64{150, 200}, Ticks: []string{"0.5", "1"}},
		"Figure 8, jct_seconds.mean; one workload each: no interval: fifo, published":   {X: []float64{-0.125, 0.875}, Y: []float64{125, 250}, Ticks: []string{"0.5", "1"}},
		"Figure 8, jct_seconds.mean; one workload each: no interval: pollux, ours":      {X: []float64{1.125}, Y: []float64{nan}, Ticks: []string{"0.5", "1"}},
		"Figure 8, jct_seconds.mean; one workload each: no interval: pollux, published": {X: []float64{1.125}, Y: []float64{80}, Ticks: []string{"0.5", "1"}},

		"Change of jct_seconds.mean against fifo: all":             {X: []float64{0}, Y: []float64{-0.5}, Low: []float64{-0.625}, High: []float64{-0.375}, Ticks: []string{"pollux"}},
		"jct_seconds_mean; one workload each: no interval: fifo":   {X: []float64{0.5, 1}, Y: []float64{150, 200}},
		"jct_seconds_mean; one workload each: no interval: pollux": {X: []float64{0.5, 1}, Y: []float64{nan, 100}},

		"CDF of JCT; load 1: fifo":                          {X: []float64{100, 300}, Y: []float64{0.5, 1}},
		"CDF of JCT; load 1: pollux":                        {X: []float64{100}, Y: []float64{0.5}},
		"CDF of finish-time fairness (rho); load 1: fifo":   {X: []float64{0.5}, Y: []float64{1}},
		"CDF of finish-time fairness (rho); load 1: pollux": {X: []float64{2}, Y: []float64{1}},
		"Devices held; load 1: fifo":                        {X: []float64{0, 60.5, 95}, Y: []float64{4, 0, 0}},
		"Devices held; load 1: pollux":                      {X: []float64{0, 30}, Y: []float64{8, 0}},
		"Statistical efficiency; load 1: fifo":              {X: []float64{0, 60.5, 95}, Y: []float64{nan, 0.5, nan}},
		"Statistical efficiency; load 1: pollux":            {X: []float64{0, 30}, Y: []float64{0.25, nan}},
		"Waiting jobs; load 1: fifo":                        {X: []float64{0, 60.5, 95}, Y: []float64{0, 1, 0}},
		"Waiting jobs; load 1: pollux":                      {X: []float64{0, 30}, Y: []float64{0, 0}},
		"Devices of job 1; load 1: fifo":                    {X: []float64{0, 20, 30, 90}, Y: []float64{2, 0, 4, 0}},
		"Devices of job 1; load 1: pollux":                  {X: []float64{5, 25}, Y: []float64{1, 0}},
		"Batch of job 1; load 1: fifo":                      {X: []float64{0, 20, 30, 60, 90}, Y: []float64{128, 0, 256, 256, 0}},
		"Batch of job 1; load 1: pollux":                    {X: []float64{5, 25}, Y: []float64{64, 0}},

		"Statistical efficiency of job 1; load 1: fifo": {X: []float64{0, 20, 30, 60, 90}, Y: []float64{1, 0, 0.5, 0.75, 0}},
		"Contention of job 1; load 1: fifo":             {X: []float64{0, 60.5, 90}, Y: []float64{5, 2, 2}},
		"Contention of job 1; load 1: pollux":           {X: []float64{5, 25}, Y: []float64{1, 1}},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return same(a, b) || math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	for _, text := range []string{"Published figures and ours", "25 %</bdi>", "published.csv"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	if len(s.Problems) > 0 || strings.Contains(page, "no run") {
		t.Errorf("problems %q, or a cell is missed whose items do not go together", s.Problems)
	}
}

// The page of the study of Pollux carries every published point, and ours beside it, as published.csv has them.
func TestPolluxPageCarriesEveryPoint(t *testing.T) {
	text, err := os.ReadFile("../../docs/pictures/pollux-osdi21.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, page := studyPage(t, files(map[string]string{
		"published.csv": string(text), "runs.csv": "run,scheduler,load,workload,setting,replicate\n", "stats.csv": "metric,load,workload,setting,scheduler,baseline\n",
	}))
	column, values := carried(t, page)
	var figures []struct {
		Title string
		Lines []struct {
			Key    string
			Hollow bool
		}
	}
	if err := json.Unmarshal(values["figures"], &figures); err != nil {
		t.Fatal(err)
	}
	type point struct {
		figure          string
		published, ours float64
	}
	var got, want []point
	for _, f := range figures {
		for i := 0; i+1 < len(f.Lines); i += 2 {
			ours, published := column(f.Lines[i].Key+".y"), column(f.Lines[i+1].Key+".y")
			for k := range ours {
				got = append(got, point{f.Title, published[k], ours[k]})
			}
		}
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		want = append(want, point{row[0] + ", " + row[1] + "; bars: 95 % intervals", finite(row[7]), finite(row[8])})
	}
	sorted := func(list []point) []point {
		slices.SortFunc(list, func(a, b point) int {
			return cmpOrder(strings.Compare(a.figure, b.figure), a.published, b.published)
		})
		return list
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) })
	if diff := cmp.Diff(sorted(want), sorted(got), cmp.AllowUnexported(point{}), near); diff != "" || len(want) != 24 {
		t.Errorf("%d points (-want +got):\n%s", len(want), diff)
	}
}

func cmpOrder(first int, a, b float64) int {
	switch {
	case first != 0:
		return first
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// A table of runs that breaks off is told, and what was read of it is drawn.
func TestBrokenTablesOfRunsAreTold(t *testing.T) {
	all := published(t)
	whole := all["usage.csv.gz"].Data
	all["usage.csv.gz"].Data = whole[:len(whole)-9]
	all["jobs.csv.gz"].Data = []byte("no gzip")
	all["fairness.csv.gz"].Data = all["timeline.csv.gz"].Data
	s, page := studyPage(t, all)
	for _, want := range []string{"usage.csv.gz cannot be read whole", "jobs.csv.gz cannot be read whole", "fairness.csv.gz cannot be read whole: there is no column &#34;rho&#34;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if !slices.ContainsFunc(s.Figures(), func(f Figure) bool { return f.Place == placeOver }) {
		t.Error("nothing is drawn of a table that breaks off")
	}
}

// Figures are drawn alike again and again, whatever their texts are, and a format that is not there is refused.
func TestFiguresAreDrawn(t *testing.T) {
	s, _ := studyPage(t, published(t))
	r, _ := pageOf(t, small())
	figures := append(s.Figures(), r.Figures()...)
	figures = append(figures, FiguresOfRuns([]*Run{r, r})...)
	nan := math.NaN()
	figures = append(figures,
		Figure{Name: "empty"},
		Figure{Name: "hostile", Title: hostile, XLabel: hostile, YLabel: "µ √ 東", Ticks: []string{hostile, "x"}, X: Plain, Y: Plain, Lines: []Line{{Label: hostile, X: []float64{0, 1}, Y: []float64{1, nan}, Points: true}}},
		Figure{Name: "point", X: Seconds, Y: Seconds, LogX: true, Lines: []Line{{X: []float64{0}, Y: []float64{0}}}},
		Figure{Name: "wide", X: Seconds, Y: Plain, Lines: []Line{{X: []float64{0, 1e12}, Y: []float64{-1e300, 1e300}, Low: []float64{nan, 0}, High: []float64{1, nan}, Colour: 99}}},
		Figure{Name: "log", X: Plain, Y: Share, LogX: true, Lines: []Line{{X: []float64{1e-300, 1e300}, Y: []float64{0, 1}, Step: true}}},
	)
	for i := range figures {
		for _, format := range Formats() {
			t.Run(figures[i].Name+"."+format, func(t *testing.T) {
				var once, again bytes.Buffer
				if err := errors.Join(Draw(&once, &figures[i], format), Draw(&again, &figures[i], format)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(once.Bytes(), again.Bytes()) {
					t.Error("the same figure gives other bytes")
				}
				if format == "pdf" {
					if !bytes.HasPrefix(once.Bytes(), []byte("%PDF-")) {
						t.Error("no PDF")
					}
					return
				}
				for d := xml.NewDecoder(&once); ; {
					token, err := d.Token()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					if start, ok := token.(xml.StartElement); ok && !slices.Contains([]string{"svg", "g", "path", "text", "defs"}, start.Name.Local) {
						t.Errorf("element %q", start.Name.Local)
					}
				}
			})
		}
	}
	if err := Draw(io.Discard, &Figure{}, "png"); err == nil {
		t.Error("a format that is not there is drawn")
	}
}

// Names of files are unique and plain.
func TestFiguresHavePlainNames(t *testing.T) {
	list := unique([]Figure{{Name: fileName("Figure 8a", "jct_seconds.mean")}, {Name: fileName("figure/8a", "JCT seconds.mean")}, {Name: fileName("../..")}})
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"figure-8a-jct-seconds.mean", "figure-8a-jct-seconds.mean-2", "figure"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Bands over loads are Student's intervals of the means: of one run there is none, and no time is below 0.
func TestBandsOverLoadsAreIntervals(t *testing.T) {
	const one, two, four = 12.706204736174698, 4.302652729749462, 2.7764451051977943 // t at 95 % of so many degrees of freedom
	runs := "run,scheduler,load,replicate,jct_seconds_mean,makespan_seconds\n"
	for i, row := range []string{
		"fifo,0.5,1,10,7", "fifo,0.5,2,12,", "fifo,0.5,3,14,", "fifo,1,1,20,9", "fifo,1,2,22,",
		"las,0.5,1,5,5", "las,1,1,1,3", "las,1,2,2,", "las,1,3,3,", "las,1,4,4,", "las,1,5,5,",
	} {
		runs += fmt.Sprintf("r%d,%s\n", i, row)
	}
	s, err := ReadStudyFS(files(map[string]string{"runs.csv": runs}), "x")
	if err != nil {
		t.Fatal(err)
	}
	nan, both := math.NaN(), []float64{0.5, 1}
	want := []Figure{
		{
			Place: placeLoad, Name: "jct-seconds-mean", Title: "jct_seconds_mean; bands: 95 % intervals", XLabel: "load", YLabel: "jct_seconds_mean", X: Plain, Y: Seconds,
			Lines: []Line{
				{Label: "fifo", X: both, Y: []float64{12, 21}, Low: []float64{12 - two*2/math.Sqrt(3), 21 - one}, High: []float64{12 + two*2/math.Sqrt(3), 21 + one}},
				{Label: "las", X: both, Y: []float64{5, 3}, Low: []float64{nan, 3 - four*math.Sqrt(2.5)/math.Sqrt(5)}, High: []float64{nan, 3 + four*math.Sqrt(2.5)/math.Sqrt(5)}, Colour: 1},
			},
		},
		{
			Place: placeLoad, Name: "makespan-seconds", Title: "makespan_seconds; one workload each: no interval", XLabel: "load", YLabel: "makespan_seconds", X: Plain, Y: Seconds,
			Lines: []Line{{Label: "fifo", X: both, Y: []float64{7, 9}}, {Label: "las", X: both, Y: []float64{5, 3}, Colour: 1}},
		},
	}
	near := cmp.Comparer(func(a, b float64) bool { return same(a, b) || math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, s.loadFigures(), near); diff != "" {
		t.Errorf("figures over loads (-want +got):\n%s", diff)
	}
	if _, low, high := overLoads([]float64{1}, []float64{1, 1}, []float64{1, 9}, func(int) bool { return true }); low[0] != 0 || !(high[0] > 50) {
		t.Errorf("the interval of 1 s and 9 s is %v to %v", low, high)
	}
}

// Ours of a publication has its interval where published.csv tells one.
func TestPublishedFiguresHaveIntervals(t *testing.T) {
	all := published(t)
	all["published.csv"].Data = []byte("figure,metric,scheduler,load,runs,published,ours,difference,ours_low,ours_high\n" +
		"Table 2,jct_seconds.mean,fifo,1,2,250,200,-0.2,150,250\nTable 2,jct_seconds.mean,pollux,1,1,80,100,0.25,,\n")
	s, page := studyPage(t, all)
	f := s.Figures()[0]
	want := Line{Label: "ours", X: []float64{0, 1}, Y: []float64{200, 100}, Low: []float64{150, math.NaN()}, High: []float64{250, math.NaN()}, Points: true}
	if diff := cmp.Diff(want, f.Lines[0], cmp.Comparer(same)); diff != "" || f.Title != "Table 2, jct_seconds.mean; bars: 95 % intervals" {
		t.Errorf("%s (-want +got):\n%s", f.Title, diff)
	}
	if !strings.Contains(page, "2.5 min to 4.17 min") {
		t.Error("the table does not tell the interval")
	}
	all["published.csv"].Data = []byte("figure,metric,scheduler,load,runs,published,ours,difference,ours_low,ours_high,workloads\nTable 2,jct_seconds.mean,fifo,1,8,250,200,-0.2,,,1\n")
	if s, page = studyPage(t, all); s.Figures()[0].Title != "Table 2, jct_seconds.mean; one workload each: no interval" || !strings.Contains(shown(t, page), "| 8 | 1 |") {
		t.Errorf("of one workload: %q", s.Figures()[0].Title)
	}
	all["published.csv"].Data = []byte("figure,metric,scheduler,load,runs,published,ours,difference\nTable 2,jct_seconds.mean,fifo,1,5,250,200,-0.2\n")
	if s, _ = studyPage(t, all); s.Figures()[0].Title != "Table 2, jct_seconds.mean" {
		t.Errorf("of an earlier version: %q", s.Figures()[0].Title)
	}
}
