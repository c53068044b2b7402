package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// What a run teaches of how bands hold is kept beside its state: a scheduler that goes on with the run is told its rounds again, but not what was forecast in them.
const (
	keptFile  = "forecasts.json"
	keepEvery = time.Minute // at the most often
)

// keeping keeps what the forecaster of a run learns.
type keeping struct {
	path string
	run  string // the same for all schedulers of the run
	log  func(text string, err error)

	known   int  // rounds up to it were told to a forecaster before, whose scheduler has ended; 0 for none
	round   int  // the last that the forecaster was told of; under the mutex of foretelling
	some    bool // something was forecast; of the goroutine that forecasts
	due     time.Duration
	trouble bool // it could not be written
}

// keptForecasts is the file.
type keptForecasts struct {
	Run         string          `json:"run"`
	Round       int             `json:"round"` // the last that the calibration knows of
	Calibration json.RawMessage `json:"calibration"`
}

// take takes up what was kept. Whatever is wrong with it, forecasts then begin anew.
func (k *keeping) take(f *twin.Forecaster) {
	text, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept keptForecasts
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	switch {
	case err != nil:
	case kept.Run != k.run:
		err = errors.New("it is of another run")
	case kept.Round < 1:
		err = fmt.Errorf("it knows of round %d", kept.Round)
	default:
		err = f.Restore(kept.Calibration)
	}
	if err != nil {
		k.log("how earlier bands held is not known: it is learned anew", err)
		return
	}
	k.known, k.round, k.some = kept.Round, kept.Round, true
}

// write keeps what is known now. round is one that the forecaster was told of.
func (k *keeping) write(f *twin.Forecaster, round int) {
	calibration, err := f.Snapshot()
	var text []byte
	if err == nil {
		text, err = json.Marshal(keptForecasts{k.run, round, calibration})
	}
	if err == nil {
		err = os.WriteFile(k.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(k.path+".new", k.path) // never half of it
	}
	if err != nil && !k.trouble {
		k.log("how bands held could not be kept", err)
	}
	k.trouble = err != nil
}

// keep is what keeps the calibration of a run; nil where it has no folder, or its schedulers cannot be told from those of another.
func (e *execution) keep(world core.Backend, state string) *keeping {
	told, is := world.(interface{ Begun() string })
	if state == "" || !is {
		return nil
	}
	return &keeping{
		path: filepath.Join(state, keptFile), run: told.Begun(),
		log: func(text string, err error) { e.log.Warn(text, "file", filepath.Join(state, keptFile), "error", err) },
	}
}

// learn tells the forecaster of a round, unless the one before it was told, and it goes on from that.
func (f *foretelling) learn(r *core.Report) error {
	if k := f.kept; k != nil && k.known > 0 {
		switch {
		case r.View.Round > k.known:
			k.known = 0
		case r.Repeated:
			return nil
		default: // rounds were lost that it knows of
			k.log("how earlier bands held is not known: it is learned anew", fmt.Errorf("it knows of round %d, and the run goes on with %d", k.known, r.View.Round))
			k.known, k.round, k.some = 0, 0, false
			f.forecaster = newForecaster(f.seed)
		}
	}
	return f.forecaster.ObserveRound(r)
}

// keepNow keeps what is known if it is time, or in any case.
func (f *foretelling) keepNow(now time.Duration, anyhow bool) {
	k := f.kept
	if k == nil || !k.some || !anyhow && now < k.due {
		return
	}
	k.due = now + keepEvery
	f.mutex.Lock()
	round := k.round
	f.mutex.Unlock()
	k.write(f.forecaster, round)
}
