package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// privateNames are names that said nothing to a reader from the field, by what to say instead. Those with a dot are of one
// type or package.
var privateNames = []struct{ not, say string }{
	{`^(Live|Not)?Foret[eo]l\w*`, "Forecast"},
	// Only a search has a method Tell: ask-and-tell is the term of the field, and its results reach it through workloads and runs.
	{`^(Telling\w*|Tells\w*|\w*Told|Tell[A-Z]\w*|([A-Z]\w*\.)?[a-z]\w*Tell)$`, "Report, Notify, Status or Known"},
	{`^(Log|Race|Pipeline|Client|Server|Forecaster)\.Tell$`, "Report, Notify, Status or Known"},
	{`^Session\.World$`, "OpenedBackend"},
	{`Outlast`, "RetryBackend"},
	{`^InVain$`, "GaveUpReason"},
	{`^core\.Cut$`, "ClampedTarget"},
	{`^Pipeline\.(Tell|HearReports|ChooseBy|Asking)$`, "PipelineOptions"},
	{`^core\.(Keeping|Lack)$`, "DeviceKeeper, MissingResource"},
	{`^Awaited$`, "PendingSubmissions"},
	{`^twin\.(Still|Beliefs|Judge|Fate)$`, "RunSnapshot, WorkloadModel, ForecastEvaluator, JobOutcome"},
	{`^(Unlike\w*|Alone|Nowhere)$`, "MixedTypes, SingleDeviceRate, NoTypeFits"},
	{`^promise\.(Of|Powers)$`, "NewJob, PowersOfTwo"},
	{`^Decision\.Of$`, "RungSize"},
	{`^Policies\.Make$`, "NewInstances"},
	{`^Config\.Choosing$`, "ForAlternative"},
	{`^Gradients\.Square$`, "SquaredNorm"},
	{`^Shipment\.Units$`, "MarginalCosts"},
	{`^Result\.Repeats$`, "ReplacedRun"},
	{`^cells\.Bound$`, "CellBinding"},
	{`^Clusters\.Guests$`, "OpportunisticSeats"},
	{`^CountsParts$`, "CountsFractions"},
	{`Stranger|LastWords|Mourn|Bury`, "UnknownClient, FinalReport, CleanUp"},
}

// privateFiles are names of files that said nothing to a reader from the field.
var privateFiles = regexp.MustCompile(`(^|/)(foret[eo]ll?\w*|telling|outlast|cuts|real|driving|last_words|strangers?|mourn|bury|invain)(_test)?\.(go|md|py)$`)

// privatePhrases are phrases of messages, help and docs, by what to say instead.
var privatePhrases = []struct{ not, say string }{
	{`(?i)\bforetel(l|ls|ling)\b|\bforetold\b`, "forecast"},
	{`(?i)\b(tell|tells|told|telling)\b`, "report, say, warn, log, state, show, know"},
	{`waits for devices: |, said pipeline`, "Job X is pending: needs 4 GPUs, 0 free"},
	{`bands are to hold`, "80 % intervals"},
	{`not any more to not any more`, "never, with this change"},
	{`intervals hold 95 % of what`, "with 95 % confidence intervals"},
	{`has put out nothing`, "has not written any output"},
	{`had ended before: `, "has already ended"},
	{`nobody serves`, "no scheduler is running for run"},
	{`without a sign there is no interval`, "no interval could be computed"},
	{`As follows from decisions|As of each round`, "Reconstructed from, Sampled once per round"},
	{`by what they were told`, "by reason"},
	{`kept back`, "held-out"},
	{`were kept before`, "reused"},
	{`decided about anew`, "the new policy decides differently"},
	{`no second door`, "no other API"},
	{`without a word to the others`, "without changing the others"},
	{`(?i)\bgo(es)? on\b`, "continue, resume, is running"},
	{`(?i)\bforesee(s|n)?\b`, "forecast, predict"},
	{`told at once`, "reported together"},
	{`(?i)\blast words\b`, "final report"},
	{`\basked in vain\b`, "does not answer"},
}

// askAndTell are the places where tell is a term of the field, or part of a format that programs read: the calls of a search, and keys of JSON.
var askAndTell = regexp.MustCompile("(?i)ask(ed)?[- ]and[- ]tell|`tell`|\\.tell\\(|def tell\\(|\"tell\":|json:\"(tell|told)\\b")

// compiled is a pattern, compiled once.
func compiled(pattern string) *regexp.Regexp {
	if p, known := patterns.Load(pattern); known {
		return p.(*regexp.Regexp)
	}
	p := regexp.MustCompile(pattern)
	patterns.Store(pattern, p)
	return p
}

var patterns sync.Map // by text

// matches lists which of the words to avoid a text holds, each with what to say instead.
func matches(text string, words []struct{ not, say string }) (found []string) {
	for _, w := range words {
		if hit := compiled(w.not).FindString(text); hit != "" {
			found = append(found, hit+": say "+w.say)
		}
	}
	return found
}

func TestNamesAreOfTheField(t *testing.T) {
	for _, f := range goFiles(t) {
		for name, e := range f.comments() {
			short := name[strings.LastIndex(name, ".")+1:]
			for _, as := range []string{name, short, path.Base(f.folder) + "." + name} {
				for _, fault := range matches(as, privateNames) {
					t.Errorf("%s: %s: %s", e.at, name, fault)
				}
			}
		}
	}
}

func TestMessagesAreOfTheField(t *testing.T) {
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				for _, fault := range matches(askAndTell.ReplaceAllString(text.Value, ""), privatePhrases) {
					t.Errorf("%s: %s", f.at(n), fault)
				}
			}
			return true
		})
	}
}

func TestFilesAndPagesAreOfTheField(t *testing.T) {
	listed, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		t.Skipf("no list of files: %v", err)
	}
	pages := 0
	for name := range strings.FieldsSeq(string(listed)) {
		if privateFiles.MatchString(name) {
			t.Errorf("%s: the name is private", name)
		}
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // removed, not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for i, line := range strings.Split(string(text), "\n") {
			for _, fault := range matches(askAndTell.ReplaceAllString(line, ""), privatePhrases) {
				t.Errorf("%s:%d: %s", name, i+1, fault)
			}
		}
	}
	if pages == 0 {
		t.Fatal("found no pages")
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		text  string
		words []struct{ not, say string }
		want  int
	}{
		"a plain name":       {"Forecast", privateNames, 0},
		"a private name":     {"NotForetold", privateNames, 1},
		"of one type":        {"Decision.Of", privateNames, 1},
		"of another":         {"Digest.Of", privateNames, 0},
		"a plain message":    {"no scheduler is running", privatePhrases, 0},
		"a private message":  {`nobody serves "x", which was foretold`, privatePhrases, 2},
		"a private verb":     {`the policy is told what it asks for`, privatePhrases, 1},
		"a private channel":  {"Told", privateNames, 1},
		"a call of a search": {"Search.Tell", privateNames, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := matches(tc.text, tc.words); len(got) != tc.want {
				t.Errorf("found %q, want %d", got, tc.want)
			}
		})
	}
}
