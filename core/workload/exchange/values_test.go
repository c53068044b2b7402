package exchange

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestUnknown(t *testing.T) {
	for cell, want := range map[string]bool{
		"": true, "Unknown": true, "NONE": true, "n/a": true, "NA": true, "null": true, "nil": true, "<none>": true, "-": true, "INVALID": true,
		"0": false, "9": false, "5x": false, "unknowns": false, "unknown  ": false, "x": false, "none of it": false, "/": false, ":": false,
	} {
		if got := unknown([]byte(cell)); got != want {
			t.Errorf("%q is unknown: %v, want %v", cell, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for cell, want := range map[string]float64{
		"0": 0, "9": 9, "42": 42, "007": 7, "123456789012345": 123456789012345, "1234567890123456": 1234567890123456, "12345678901234567890": 12345678901234567890,
		"1.5": 1.5, ".5": 0.5, "1e3": 1000, "1E3": 1000, "+4": 4, "-4": -4, "1e-2": 0.01,
	} {
		if got, ok := number([]byte(cell)); !ok || got != want {
			t.Errorf("%q is %v, %v; want %v", cell, got, ok, want)
		}
	}
	for _, cell := range []string{"", "x", "1x", "nan", "inf", "0x10", "1_000", "1:00", "1/2", "1e999", ".", "-", "1.2.3", " 1"} {
		if got, ok := number([]byte(cell)); ok {
			t.Errorf("%q is %v, want none", cell, got)
		}
	}
}

// A moment is what the library says of its date, in whatever zone.
func TestMomentsAreThoseOfTheCalendar(t *testing.T) {
	layouts := []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05-0700", "2006-01-02T15:04:05.999999Z07:00", "2006-01-02 15:04:05 -07:00"}
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-12*60, 14*60).Draw(t, "minutes ahead")*60)
		at := time.UnixMicro(rapid.Int64Range(86400e6, 5e15).Draw(t, "at")).In(zone)
		layout := rapid.SampledFrom(layouts).Draw(t, "layout")
		text := at.Format(layout)
		want, err := time.Parse(layout, text)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := moment([]byte(text), nil)
		if !ok || math.Abs(got-float64(want.UnixMicro())/1e6) > 1e-6 {
			t.Fatalf("%s is %v, %v; want %v", text, got, ok, float64(want.UnixMicro())/1e6)
		}
	})
}

func TestMoment(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for _, tc := range []struct {
		cell string
		zone *time.Location
		want float64
	}{
		{"0", nil, 0},
		{"100000000000", nil, maxSeconds},
		{"1970-01-01T00:00:00", nil, 0},
		{"1970-01-01T00:00:00", berlin, -3600},
		{"1970-01-01T00:00:00.25", berlin, -3599.75},
		{"1970-01-01T00:00:00", time.UTC, 0},
		{"1970-01-01 00:00:00 UTC", berlin, 0},
		{"1970-01-01 00:00:00.5 UTC", nil, 0.5},
		{"1970-01-01T00:00:00z", berlin, 0},
		{"1970-01-01T00:00:00Z", berlin, 0},
		{"1970-01-01T02:00:00+02", nil, 0},
		{"1970-01-01T02:30:00+0230", nil, 0},
		{"1970-01-01T02:30:00 +02:30", nil, 0},
		{"1970-01-01T00:00:00-01:30", nil, 5400},
		{"1970-01-02T00:00:00+15:00", nil, 9 * 3600},
		{"1970-01-31T23:59:60", nil, 31 * 86400},
		{"1972-02-29T00:00:00", nil, 789 * 86400},
		{"1972-03-01T00:00:00", nil, 790 * 86400},
		{"1973-02-28T00:00:00", nil, 1154 * 86400},
		{"2000-02-29T00:00:00", nil, 951782400},
		{"2100-02-28T00:00:00", nil, 4107456000},
		{"5000-12-31T00:00:00", nil, 95649033600},
		{"2023-04-30T12:34:56.789", nil, 1682858096.789},
		{"2023-12-31T09:09:09.", nil, 1704013749},
		{"2023-12-31T09:09:09.0", nil, 1704013749},
		{"2023-12-31T09:09:09.9", nil, 1704013749.9},
	} {
		if got, ok := moment([]byte(tc.cell), tc.zone); !ok || math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%q is %v, %v; want %v", tc.cell, got, ok, tc.want)
		}
	}
	for _, cell := range []string{
		"", "-1", "100000000001", "x", "1970-01-01", "1970-01-01T00:00", "1970/01-01T00:00:00", "1970-01/01T00:00:00", "1970-01-01x00:00:00", "1970-01-01T00.00:00",
		"1970-01-01T00:00.00", "197x-01-01T00:00:00", "1970-0/-01T00:00:00", "1970-01-0:T00:00:00", "1969-12-31T00:00:00", "5001-01-01T00:00:00", "9999-12-31T00:00:00", "1970-00-01T00:00:00", "1970-13-01T00:00:00",
		"1970-01-00T00:00:00", "1970-01-32T00:00:00", "1970-04-31T00:00:00", "1970-06-31T00:00:00", "1970-09-31T00:00:00", "1970-11-31T00:00:00", "1970-02-29T00:00:00",
		"1972-02-30T00:00:00", "2100-02-29T00:00:00", "1970-01-01T24:00:00", "1970-01-01T00:60:00", "1970-01-01T00:00:61", "1970-01-01T00:00:00x", "1970-01-01T00:00:00+1",
		"1970-01-01T00:00:00+100", "1970-01-01T00:00:00*0100", "1970-01-01T00:00:00+15:01", "1970-01-01T00:00:00+9900", "1970-01-01T00:00:00+0x",
		"1970-01-01T00:00:00+01:00:00", "1970-01-01T00:00:00+1:000", "1970-01-01T00:00:00+0:100", "1970-01-01T00:00:00+01:0", "1970-01-01T00:00:00y", "1970-01-01T00:00:00.5x", "1970-01-01T00:00:00.5:", "1970-01-01T00:00:00+-1",
	} {
		if got, ok := moment([]byte(cell), nil); ok {
			t.Errorf("%q is %v, want none", cell, got)
		}
	}
}

func TestSpan(t *testing.T) {
	for cell, want := range map[string]float64{
		"0": 0, "90": 90, "1.5": 1.5, "-5": -5, "100000000000": maxSeconds, "-100000000000": -maxSeconds, "1:30": 90, "01:00:30": 3630, "00:00.5": 0.5, "2-03": 2*86400 + 3*3600,
		"2-03:04": 2*86400 + 3*3600 + 4*60, "2-03:04:05": 2*86400 + 3*3600 + 4*60 + 5, "0-0": 0, "0:0": 0, "1157407-09:46:40": maxSeconds,
	} {
		if got, ok := span([]byte(cell)); !ok || got != want {
			t.Errorf("%q is %v, %v; want %v", cell, got, ok, want)
		}
	}
	for _, cell := range []string{
		"", "x", "100000000001", "-100000000001", "1:2:3:4", "1-2:3:4:5", "x-1", "-1-1", "--1", "1-x", "1-", "1:x", "1:-5", "2-1:-5", "1157407-09:46:41", "1:", ":1", "1:30h",
	} {
		if got, ok := span([]byte(cell)); ok {
			t.Errorf("%q is %v, want none", cell, got)
		}
	}
}

func TestCount(t *testing.T) {
	for cell, want := range map[string]int{"0": 0, "4": 4, "4.0": 4, "-3": -3, "1048576": maxCount, "-1048576": -maxCount, "1e3": 1000} {
		if got, ok := count([]byte(cell)); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", cell, got, ok, want)
		}
	}
	for _, cell := range []string{"", "4.5", "1048577", "-1048577", "x"} {
		if got, ok := count([]byte(cell)); ok {
			t.Errorf("%q is %d, want none", cell, got)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a b": true, " ": true, "~": true, "é": true, "a\tb": false, "\x1f": false, "\x7f": false, "a\x00": false, "\xff": false, "é\x01": false, "\u200b": false, "€": true,
	} {
		if got := printable([]byte(text)); got != want {
			t.Errorf("%q is printable: %v, want %v", text, got, want)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	type outcome struct {
		Outcome      string
		Ended, Known bool
	}
	for state, want := range map[string]outcome{
		"":                             {"", true, true},
		"Completed":                    {"completed", true, true},
		"COMPLETED+":                   {"completed", true, true},
		"Job-Finished":                 {"completed", true, true},
		"BOOT_FAIL":                    {"failed", true, true},
		"CANCELLED by 1000":            {"cancelled", true, true},
		"+":                            {"", true, true},
		" completed":                   {"", true, true},
		"MaximumExecutionTimeExceeded": {"timeout", true, true},
		"OUT_OF_MEMORY":                {"out_of_memory", true, true},
		"NODE_FAIL":                    {"node_failed", true, true},
		"evicted":                      {"preempted", true, true},
		"RUNNING":                      {"", false, true},
		"QuotaReserved":                {"", false, true},
		"strange":                      {"", true, false},
	} {
		var got outcome
		if got.Outcome, got.Ended, got.Known = outcomeOf(state); got != want {
			t.Errorf("%q is %+v, want %+v", state, got, want)
		}
	}
}

func TestGPUs(t *testing.T) {
	type size struct {
		Total       int
		Of          string
		PerNode, OK bool
	}
	for text, want := range map[string]size{
		"":                                     {0, "", false, true},
		"cpu=8,mem=64G":                        {0, "", false, true},
		"billing=8,gres/gpu:a100=4,gres/gpu=4": {4, "a100", false, true},
		"gres/gpu:v100=2,gres/gpu:a100=4":      {6, "a100|v100", false, true},
		"gres/gpu:a100=2,gres/gpu:a100=4":      {6, "a100", false, true},
		"gres/gpu=7,gres/gpu:a100=4":           {7, "a100", false, true},
		"gres/gpu=1,gres/gpu=2":                {3, "", false, true},
		"gres/gpu:a100=0":                      {0, "", false, true},
		"gres/gpu:=3":                          {3, "", false, true},
		"gres/gpumem=9000,gres/gpuutil=50,gres/gpu=1": {1, "", false, true},
		"gpu=4":                              {0, "", false, true},
		"gpu:a100:4(IDX:0-3),lic:1":          {4, "a100", true, true},
		"gpu:2":                              {2, "", true, true},
		"gpu":                                {1, "", true, true},
		"gres/gpu":                           {1, "", true, true},
		"gpu:a100":                           {1, "a100", true, true},
		"gpu(S:0)":                           {1, "", true, true},
		"gpu(IDX:0,2),gpu:v100:2(IDX:(1),3)": {2, "v100", true, true},
		"gpu:2(a,gpu:4)":                     {2, "", true, true},
		"gpus:4":                             {0, "", true, true},
		"lic:1":                              {0, "", false, true},
		"a),gpu:2":                           {2, "", true, true},
		"gres/gpu:a100=x":                    {0, "", false, false},
		"gres/gpu=-1":                        {0, "", false, false},
		"gpu:a100:-1":                        {0, "", true, false},
		"gres/gpu:a|b=1":                     {0, "", false, false},
		"gres/gpu:|b=1":                      {0, "", false, false},
		"gres/gpu:a\x01=1":                   {0, "", false, false},
		"gres/gpu: a=1":                      {0, "", false, false},
		"gres/gpu:a =1":                      {0, "", false, false},
	} {
		var got size
		if got.Total, got.Of, got.PerNode, got.OK = gpus([]byte(text)); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

// cellsOf are the cells of rows; a row that cannot be read is its problem.
func cellsOf(t *testing.T, text string, divider byte) (rows [][]string, at []int) {
	t.Helper()
	s := &splitter{lines: newLines(strings.NewReader(text)), divider: divider, quotes: true}
	for {
		cells, err := s.next()
		if err != nil && strings.Contains(err.Error(), "EOF") {
			return rows, at
		}
		at = append(at, s.line)
		if err != nil {
			rows = append(rows, []string{err.Error()})
			continue
		}
		var row []string
		for _, cell := range cells {
			row = append(row, string(cell))
		}
		rows = append(rows, row)
	}
}

func TestRowsInQuotes(t *testing.T) {
	long, many := strings.Repeat("x", maxLine+100_000), strings.Repeat("\n", maxQuoted)
	for name, tc := range map[string]struct {
		text string
		want [][]string
		at   []int
	}{
		"plain":                       {"a,b\r\nc,\n,d", [][]string{{"a", "b"}, {"c", ""}, {"", "d"}}, []int{1, 2, 3}},
		"blank lines":                 {"\n  \na,b\n\n\nc,d\n", [][]string{{"a", "b"}, {"c", "d"}}, []int{3, 6}},
		"a divider":                   {`"a,b",c` + "\n", [][]string{{"a,b", "c"}}, []int{1}},
		"quotes within":               {`"a""b","""",x"y` + "\n", [][]string{{`a"b`, `"`, `x"y`}}, []int{1}},
		"quotes of nothing":           {`"",a,""` + "\n", [][]string{{"", "a", ""}}, []int{1}},
		"a quote at the end":          {`a,"b"`, [][]string{{"a", "b"}}, []int{1}},
		"an empty cell at the end":    {`"a",`, [][]string{{"a", ""}}, []int{1}},
		"a line end":                  {"\"a\nb\",c\nd,e\n", [][]string{{"a\nb", "c"}, {"d", "e"}}, []int{1, 3}},
		"two line ends":               {"\"a\n\nb\",c\nd,\"e\nf\"\ng,h", [][]string{{"a\n\nb", "c"}, {"d", "e\nf"}, {"g", "h"}}, []int{1, 4, 6}},
		"text after it":               {"\"a\"b,c\nd,e\n", [][]string{{errAfter.Error()}, {"d", "e"}}, []int{1, 2}},
		"text after several lines":    {"\"a\nb,c\"d\ne,f\n", [][]string{{errAfter.Error()}, {"b", `c"d`}, {"e", "f"}}, []int{1, 2, 3}},
		"not closed":                  {"a,\"b\nc,d\n", [][]string{{errQuote.Error()}, {"c", "d"}}, []int{1, 2}},
		"not closed at the end":       {"a,b\nc,\"d", [][]string{{"a", "b"}, {errQuote.Error()}}, []int{1, 2}},
		"a quote in a cell":           {"a\"b,c\nd,e\n", [][]string{{`a"b`, "c"}, {"d", "e"}}, []int{1, 2}},
		"as many lines as may be":     {"\"a" + many + "b\",c\nd,e\n", [][]string{{"a" + many + "b", "c"}, {"d", "e"}}, []int{1, maxQuoted + 2}},
		"one more":                    {"\"a\n" + many + "b\",c\nd,e\n", [][]string{{errQuote.Error()}, {`b"`, "c"}, {"d", "e"}}, []int{1, maxQuoted + 2, maxQuoted + 3}},
		"a line that is too long":     {"a,b\n" + long + "\nc,d\n", [][]string{{"a", "b"}, {errLong.Error()}, {"c", "d"}}, []int{1, 2, 3}},
		"one at the end":              {"a,b\n" + long, [][]string{{"a", "b"}, {errLong.Error()}}, []int{1, 2}},
		"one in quotes":               {"\"a\n" + long + "\nc,d\n", [][]string{{errQuote.Error()}, {errLong.Error()}, {"c", "d"}}, []int{1, 2, 3}},
		"longer than a buffer":        {long[:200_000] + ",b\r\nc,d\n", [][]string{{long[:200_000], "b"}, {"c", "d"}}, []int{1, 2}},
		"longer than it, at the end":  {"c,d\n" + long[:200_000] + ",b", [][]string{{"c", "d"}, {long[:200_000], "b"}}, []int{1, 2}},
		"a quote that follows quotes": {"\"a\"\"\nb\",c\n", [][]string{{"a\"\nb", "c"}}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, at := cellsOf(t, tc.text, ',')
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rows -want +got:\n%.2000s", diff)
			}
			if diff := cmp.Diff(tc.at, at); diff != "" {
				t.Errorf("lines -want +got:\n%s", diff)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]bool{"0": true, "7": true, "9007199254740991": true, "9007199254740992": false, "007": false, "-1": false, "+1": false, "x": false, "": false, "1.0": false} {
		if got := canonical(name); got != want {
			t.Errorf("%q is a whole number: %v, want %v", name, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\xffb": "a\ufffdb", strings.Repeat("é", 60): strings.Repeat("é", 60), strings.Repeat("é", 61): strings.Repeat("é", 60) + "…",
	} {
		if got := shorten(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A job is kept, and as long as it was, whenever it ran: also through the hour that clocks show twice when they are put back.
func TestElapsedSettlesDates(t *testing.T) {
	for name, back := range map[string]time.Time{
		"Europe/Berlin":       time.Date(2025, 10, 26, 1, 0, 0, 0, time.UTC),
		"America/Los_Angeles": time.Date(2017, 11, 5, 9, 0, 0, 0, time.UTC),
		"Australia/Lord_Howe": time.Date(2025, 4, 5, 15, 0, 0, 0, time.UTC), // by half an hour
		"Asia/Kolkata":        time.Date(2025, 10, 26, 1, 0, 0, 0, time.UTC),
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				submit := back.Add(time.Duration(rapid.IntRange(-3*3600, 3*3600).Draw(t, "submitted")) * time.Second)
				start := submit.Add(time.Duration(rapid.IntRange(0, 3*3600).Draw(t, "waits")) * time.Second)
				elapsed := rapid.IntRange(1, 3*3600).Draw(t, "elapsed")
				at := func(m time.Time) string { return m.In(zone).Format("2006-01-02T15:04:05") }
				log := fmt.Sprintf("JobID|Submit|Start|End|ElapsedRaw|AllocTRES\n1|%s|%s|%s|%d|gres/gpu=1\n",
					at(submit), at(start), at(start.Add(time.Duration(elapsed)*time.Second)), elapsed)
				trace, counts, err := Import(context.Background(), "log", strings.NewReader(log), Options{From: Sacct, Zone: zone})
				if err != nil || counts.Kept != 1 {
					t.Fatalf("error %v, %+v of\n%s", err, counts, log)
				}
				r := trace.At(0)
				if r.Duration != float64(elapsed) {
					t.Fatalf("lasts %v s, want %d, of\n%s", r.Duration, elapsed, log)
				}
				if got := trace.Epoch + r.Start; at(time.Unix(int64(got), 0)) != at(start) {
					t.Fatalf("starts %s, want %s, of\n%s", at(time.Unix(int64(got), 0)), at(start), log)
				}
			})
		})
	}
}

// Both readings of a date are those of which the clocks of the zone show it.
func TestDatesThatComeTwice(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		zone          *time.Location
		date          string
		first, second string // in UTC
	}{
		{berlin, "2025-10-26T01:59:59", "2025-10-25T23:59:59Z", "2025-10-25T23:59:59Z"},
		{berlin, "2025-10-26T02:00:00", "2025-10-26T00:00:00Z", "2025-10-26T01:00:00Z"},
		{berlin, "2025-10-26T02:59:59.5", "2025-10-26T00:59:59.5Z", "2025-10-26T01:59:59.5Z"},
		{berlin, "2025-10-26T03:00:00", "2025-10-26T02:00:00Z", "2025-10-26T02:00:00Z"},
		{berlin, "2025-10-26T02:30:00+01:00", "2025-10-26T01:30:00Z", "2025-10-26T01:30:00Z"},
		{berlin, "2025-10-26T02:30:00 UTC", "2025-10-26T02:30:00Z", "2025-10-26T02:30:00Z"},
		{losAngeles, "2017-11-05T01:30:00", "2017-11-05T08:30:00Z", "2017-11-05T09:30:00Z"},
		{losAngeles, "2017-11-05T02:00:00", "2017-11-05T10:00:00Z", "2017-11-05T10:00:00Z"},
		{nil, "2025-10-26T02:30:00", "2025-10-26T02:30:00Z", "2025-10-26T02:30:00Z"},
	} {
		got, ok := instantOf([]byte(tc.date), tc.zone)
		first, _ := moment([]byte(tc.first), nil)
		second, _ := moment([]byte(tc.second), nil)
		if want := (instant{first, second}); !ok || got != want {
			t.Errorf("%s in %v is %+v, %v; want %+v", tc.date, tc.zone, got, ok, want)
		}
	}
}
