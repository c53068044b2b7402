package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// Options say how a study is run.
type Options struct {
	Catalog quartet.Catalog // components that configs may name
	Config  configs.Options // how configs are read; files and settings are those of the study
	Dir     string          // folder of the study
	Workers int             // runs at a time, at least 1
	Shard   int             // from 1; 0 for the whole study
	Shards  int             // number of shards; 0 for no sharding
	Build   string          // identifies the program: another one repeats no run
	Log     *slog.Logger    // takes what components log; nil for nothing

	write []string // files of a run that are kept besides jobs.csv
	runs  bool     // what is not kept is run: the jobs of every source are looked at before

	// Environment gives each run its policies of other processes; nil where there are none.
	Environment func(context.Context) Environment
	// Progress is called for every run that ended, one at a time.
	Progress func(done, total int)
}

// Environment is where one run finds policies of other processes.
type Environment struct {
	Outside func(configs.Outside) (configs.Catalog, error) // adds the policies of other processes to the catalogue; nil for none
	Plugins quartet.Plugins                                // describes these processes
	Close   func() error                                   // ends these processes
}

func (e Environment) close() error {
	if e.Close == nil {
		return nil
	}
	return e.Close()
}

func (o *Options) environment(ctx context.Context) Environment {
	if o.Environment == nil {
		return Environment{}
	}
	return o.Environment(ctx)
}

// Result is what a study came to.
type Result struct {
	Study   *Study       // the study that was run
	Rows    []Row        // in the order of the tables
	Stats   []Comparison // comparisons with the baseline
	Looks   int          // at the intervals, with seeds added until they are narrow
	Ran     int          // runs that were simulated
	Reused  int          // runs whose results were stored before
	Failed  int          // runs that ended by an error
	Missing int          // runs without a result, which other shards hold
	Narrow  bool         // the intervals are as narrow as was asked for, or nothing was asked
	Known   bool         // none of them is unknown

	counted map[string]bool // hashes of the runs that Ran or Reused counts: later looks have those of earlier ones, too
}

// counts reports whether a run was not counted yet, and notes that it is now.
func (r *Result) counts(hash string) bool {
	if r.counted == nil {
		r.counted = map[string]bool{}
	}
	known := r.counted[hash]
	r.counted[hash] = true
	return !known
}

// Row is a run and what is kept of it.
type Row struct {
	*Run
	*Record // nil when the run is missing
}

// Outcome is that of the row in the tables.
func (r *Row) outcome() string {
	if r.Record == nil {
		return Missing
	}
	return r.Record.Outcome
}

// Execute runs what is not kept of a study and writes its tables; a shard writes none. A run that fails is reported in the tables,
// and keeps no other from running. An error besides a result is that of the context: the tables are of what was run until then.
func Execute(ctx context.Context, s *Study, o Options) (*Result, error) {
	if o.Shards > 1 && s.Seeds.Until != nil {
		return nil, s.problem("seeds.until", "shards cannot know how many seeds suffice", "give a count only")
	}
	o.runs = true
	return s.look(ctx, &o, func(kept *store, runs []*Run, result *Result) error {
		return execute(ctx, kept, o.mine(runs), &o, result)
	})
}

// Count checks every config of a study, and returns how many runs it has at first.
func (s *Study) Count(ctx context.Context, o Options) (int, error) {
	o.write = s.Write
	e := &expansion{Study: s, options: &o, told: map[string]bool{}, sources: map[string]*sourceFacts{}}
	runs, err := e.expand(ctx, s.Seeds.Count)
	return len(runs), err
}

// look has runs obtained for the store of a study, as many times as it takes for narrow intervals, and writes the tables.
func (s *Study) look(ctx context.Context, o *Options, obtain func(kept *store, runs []*Run, result *Result) error) (*Result, error) {
	o.write = s.Write
	e := &expansion{Study: s, options: o, told: map[string]bool{}, sources: map[string]*sourceFacts{}}
	runs, err := e.expand(ctx, s.Seeds.Count)
	if err != nil {
		return nil, err
	}
	lock := lockFile
	if o.Shards > 1 {
		lock = fmt.Sprintf("%s-%d-of-%d", lockFile, o.Shard, o.Shards)
	}
	kept, closed, err := open(o.Dir, lock)
	if err != nil {
		return nil, err
	}
	defer closed()
	if err := s.writeResolved(o.Dir); err != nil {
		return nil, err
	}
	result := &Result{Study: s, Narrow: true, Known: true}
	var interrupted error
	for look := 1; ; look++ {
		interrupted = obtain(kept, runs, result)
		if interrupted != nil && ctx.Err() == nil {
			return nil, interrupted // nothing more can be kept
		}
		result.gather(kept, runs)
		if result.Missing == 0 {
			interrupted = nil // the last runs were over
		}
		if result.Looks = look; interrupted != nil || s.Seeds.Until == nil {
			break
		}
		result.Narrow, result.Known = s.narrow(result, kept.jobs, look)
		if result.Narrow || result.Missing > 0 || look*s.Seeds.Count >= s.Seeds.Until.Most {
			break
		}
		more, err := e.expand(ctx, min((look+1)*s.Seeds.Count, s.Seeds.Until.Most))
		if interrupted = ctx.Err(); interrupted != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		runs = more
	}
	if o.Shards <= 1 {
		if err := result.write(kept, o); err != nil {
			return nil, err
		}
	}
	return result, interrupted
}

// mine are the runs of a shard. Those of one workload stay together.
func (o *Options) mine(runs []*Run) []*Run {
	if o.Shards <= 1 {
		return runs
	}
	var list []*Run
	place := map[string]int{}
	for _, r := range runs {
		if _, known := place[r.jobs]; !known {
			place[r.jobs] = len(place)
		}
		if place[r.jobs]%o.Shards == o.Shard-1 {
			list = append(list, r)
		}
	}
	return list
}

// gather reads what is kept of every run.
func (r *Result) gather(kept *store, runs []*Run) {
	r.Rows, r.Failed, r.Missing = make([]Row, len(runs)), 0, 0
	for i, run := range runs {
		r.Rows[i] = Row{run, kept.read(run.Hash)}
		if record := r.Rows[i].Record; record != nil && kept.unchanged && kept.changed(record) {
			r.Rows[i].Record = nil
		}
		switch r.Rows[i].outcome() {
		case Failed:
			r.Failed++
		case Missing:
			r.Missing++
		}
	}
}

// execute runs what is not kept, several at a time. An error is one of keeping, or of the context.
func execute(ctx context.Context, kept *store, runs []*Run, o *Options, result *Result) error {
	var todo []*Run
	for _, r := range runs {
		if !result.counts(r.Hash) {
			continue // the same run by another name, or of an earlier look
		}
		if record := kept.read(r.Hash); record != nil && record.Outcome != Failed && kept.usable(record) && !r.outside {
			result.Reused++
			continue
		}
		todo = append(todo, r)
	}
	// Runs of one source come after another, so that few sources are in memory; otherwise the order is random.
	slices.SortFunc(todo, func(a, b *Run) int {
		for _, order := range []int{strings.Compare(a.source, b.source), strings.Compare(a.jobs, b.jobs)} {
			if order != 0 {
				return order
			}
		}
		return strings.Compare(a.Hash, b.Hash)
	})
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	held := newHeld(todo)
	var mutex sync.Mutex
	next, done := 0, 0
	var workers sync.WaitGroup
	for range max(o.Workers, 1) {
		workers.Go(func() {
			for {
				mutex.Lock()
				if next == len(todo) || ctx.Err() != nil {
					mutex.Unlock()
					return
				}
				r := todo[next]
				next++
				mutex.Unlock()
				record, files := runOne(ctx, r, o, held)
				held.release(r)
				if ctx.Err() != nil {
					return // half a run is none
				}
				if err := kept.write(record, files); err != nil {
					stop(err)
					return
				}
				mutex.Lock()
				done++
				result.Ran++
				if o.Progress != nil {
					o.Progress(done, len(todo))
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// runOne simulates a run and returns its files by name. What goes wrong is part of its record.
func runOne(ctx context.Context, r *Run, o *Options, held *held) (*Record, map[string][]byte) {
	record := &Record{Schema: recordSchema, Hash: r.Hash, OfferedLoad: metrics.Number(nan)}
	env := o.environment(ctx)
	result, err := simulate(ctx, r, o, env, held, record)
	if err = errors.Join(err, env.close()); err != nil {
		record.Outcome, record.Error = Failed, err.Error()
		return record, nil
	}
	record.Summary, record.Inputs, record.Plugins = result.Summary, result.Inputs, result.Plugins
	record.Outcome = Completed
	if result.Summary.Jobs.Unfinished > 0 {
		record.Outcome = Unfinished
	}
	files := map[string][]byte{}
	for _, f := range result.Files {
		name, table := strings.CutSuffix(f.File, ".csv")
		if table && (name == jobsTable || slices.Contains(o.write, name)) {
			files[name] = f.Content
		}
	}
	return record, files
}

func simulate(ctx context.Context, r *Run, o *Options, env Environment, held *held, record *Record) (*quartet.Result, error) {
	c, err := o.load(r, env)
	if err != nil {
		return nil, err
	}
	w, err := held.workload(ctx, r, c)
	if err != nil {
		return nil, err
	}
	resolved, err := c.Resolved()
	if err != nil {
		return nil, err
	}
	record.Config = string(resolved)
	run := &quartet.Composition{
		Config: c, Jobs: w, Keep: true, Brief: true, Log: o.Log, Plugins: env.Plugins,
		Note: func(text string) { record.Notes = append(record.Notes, text) },
	}
	result, err := run.Simulate(ctx)
	// Runs of the same jobs begin together: those that simulate first do not wait for one another's load.
	load, unknown := held.offered(r, c, w)
	record.OfferedLoad = load
	return result, errors.Join(err, unknown)
}

// held are the workloads in memory. Each is loaded once, shared by the runs that need it, and let go of after the last of them.
type held struct {
	mutex sync.Mutex
	known map[string]*shared
}

type shared struct {
	once  sync.Once
	users int
	jobs  *workload.Workload
	err   error

	loads   sync.Mutex
	offered map[string]metrics.Number // by cluster
}

// newHeld counts the users of each source, and of each sample of it.
func newHeld(runs []*Run) *held {
	h := &held{known: map[string]*shared{}}
	for _, r := range runs {
		for _, key := range []string{sourcePrefix + r.source, r.jobs} {
			if h.known[key] == nil {
				h.known[key] = &shared{}
			}
			h.known[key].users++
		}
	}
	return h
}

const sourcePrefix = "source "

func (h *held) get(key string, load func() (*workload.Workload, error)) (*workload.Workload, error) {
	h.mutex.Lock()
	s := h.known[key]
	h.mutex.Unlock()
	s.once.Do(func() { s.jobs, s.err = load() })
	return s.jobs, s.err
}

// workload is that of a run.
func (h *held) workload(ctx context.Context, r *Run, c *configs.Config) (*workload.Workload, error) {
	return h.get(r.jobs, func() (*workload.Workload, error) {
		source, err := h.get(sourcePrefix+r.source, func() (*workload.Workload, error) { return loadSource(ctx, c) })
		if err != nil {
			return nil, err
		}
		return quartet.SelectJobs(c, source)
	})
}

// offered is the offered load of a run, which those with the same jobs and cluster share.
func (h *held) offered(r *Run, c *configs.Config, w *workload.Workload) (metrics.Number, error) {
	cluster, err := json.Marshal(core.Encode(&c.Cluster))
	if err != nil {
		return 0, err
	}
	h.mutex.Lock()
	s := h.known[r.jobs]
	h.mutex.Unlock()
	s.loads.Lock()
	defer s.loads.Unlock()
	load, known := s.offered[string(cluster)]
	if !known {
		load = metrics.Number(offeredLoad(c, w))
		if s.offered == nil {
			s.offered = map[string]metrics.Number{}
		}
		s.offered[string(cluster)] = load
	}
	return load, nil
}

// release says that a run needs its workload no more.
func (h *held) release(r *Run) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, key := range []string{sourcePrefix + r.source, r.jobs} {
		if s := h.known[key]; s.users > 1 {
			s.users--
		} else {
			delete(h.known, key)
		}
	}
}
