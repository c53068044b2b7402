package search_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/core/search"
)

var nan = math.NaN()

// The test binary is also the external searches that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "external" {
		if os.Args[2] == "script" {
			follow(os.Args[3:])
		} else {
			serve(os.Args[2])
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "recorded" {
		if len(os.Args) > 4 { // bytes that a file may have
			limit, _ := strconv.ParseUint(os.Args[4], 10, 64)
			_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
		}
		runRecorded(os.Args[2], os.Args[3])
		os.Exit(0)
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or else each of them takes a second to end under the race detector
	goleak.VerifyTestMain(m)
}

// follow answers each line with the next of the script. An answer that begins with ! is something to do.
func follow(script []string) {
	in := bufio.NewReader(os.Stdin)
	for _, answer := range script {
		for step := range strings.SplitSeq(answer, ";;") {
			what, argument, _ := strings.Cut(step, " ")
			switch what {
			case "!read":
				if _, err := in.ReadString('\n'); err != nil {
					os.Exit(0)
				}
			case "!copy": // what it is told to a file
				line, err := in.ReadBytes('\n')
				if err != nil {
					os.Exit(0)
				}
				file, _ := os.OpenFile(argument, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				_, _ = file.Write(line)
				_ = file.Close()
			case "!exit":
				code, _ := strconv.Atoi(argument)
				os.Exit(code)
			case "!kill":
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case "!hang":
				time.Sleep(time.Hour)
			case "!words":
				fmt.Fprintln(os.Stderr, argument)
			case "!long":
				fmt.Println(`{"error":"` + strings.Repeat("x", search.MaxLine) + `"}`)
			case "!endless":
				for {
					fmt.Print(strings.Repeat("x", 1<<16))
				}
			case "!half":
				fmt.Print(argument)
			case "!deep":
				fmt.Println(strings.Repeat("[", 100_000))
			case "!mute":
				_ = os.Stdout.Close()
			case "!child": // which outlives its parent, holds what it writes to, and a lock for as long as it lives
				lock, _ := os.Create(argument)
				_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
				child := exec.Command("sleep", "3600")
				child.Stdout, child.Stderr, child.ExtraFiles = os.Stdout, os.Stderr, []*os.File{lock}
				_ = child.Start()
			case "!stray": // which left the group
				child := exec.Command("sleep", "3600")
				child.Stdout, child.Stderr = os.Stdout, os.Stderr
				child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				_ = child.Start()
				_ = os.WriteFile(argument, []byte(strconv.Itoa(child.Process.Pid)), 0o600)
			default:
				fmt.Println(step)
			}
		}
	}
	_, _ = in.WriteTo(discard{})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// serve is a search of this package on the other side of the protocol. One that is resumed continues with another seed.
func serve(kind string) {
	in := bufio.NewReader(os.Stdin)
	var s search.Search
	shift := 0
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var said struct {
			Hello *struct {
				Seed   uint64
				Goal   string
				Space  search.Space
				Resume *struct{ Trials []json.RawMessage }
			}
			Ask  int
			Tell []struct {
				Trial       int
				Kind        string
				Step, Value *float64
				At          float64 `json:"at_seconds"`
			}
		}
		if err := json.Unmarshal(line, &said); err != nil {
			fmt.Printf("{\"error\":%q}\n", err)
			continue
		}
		answer := map[string]any{}
		if h := said.Hello; h != nil {
			if h.Resume != nil {
				shift = len(h.Resume.Trials)
			}
			chosen, problems := search.Setting{Type: kind}.Decode("search", "space", search.Problem{Space: h.Space})
			if err := problems.Err(); err != nil {
				fmt.Printf("{\"error\":%q}\n", err)
				continue
			}
			s, _ = chosen.New(h.Seed+uint64(shift), nil)
			answer["protocol"] = 1
		}
		if said.Ask > 0 {
			trials, _ := s.Ask(context.Background(), said.Ask)
			var list []map[string]any
			for _, trial := range trials {
				list = append(list, map[string]any{"id": trial.ID + shift, "params": trial.Params})
			}
			answer["trials"], answer["done"] = list, len(trials) < said.Ask
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}
