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
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// What a run teaches about how good its forecasts are is kept beside its state: a scheduler that resumes the run sees its rounds again, but not what was forecast in
// them.
const (
	keptFile  = "forecasts.json"
	keepEvery = time.Minute // at the most often
)

// calibrationFile keeps what the forecaster of a run learns.
type calibrationFile struct {
	path string
	run  string // the same for all schedulers of the run
	log  func(text string, err error)

	known   int  // rounds up to it were seen by the forecaster of an earlier scheduler; 0 for none
	round   int  // the last that the forecaster has seen; under the mutex of liveForecast
	some    bool // something was forecast; of the goroutine that forecasts
	due     time.Duration
	trouble bool // it could not be written
}

// keptCalibration is the file.
type keptCalibration struct {
	Run         string          `json:"run"`
	Round       int             `json:"round"` // the last that the calibration knows of
	Calibration json.RawMessage `json:"calibration"`
}

// take takes up what was kept. Whatever is wrong with it, forecasts then begin anew.
func (k *calibrationFile) take(f *twin.Forecaster) {
	text, err := inputfile.Read(k.path, inputfile.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var kept keptCalibration
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
		k.log("how good earlier forecasts were is unknown: it is learned anew", err)
		return
	}
	k.known, k.round, k.some = kept.Round, kept.Round, true
}

// write keeps what is known now. round is one that the forecaster has seen.
func (k *calibrationFile) write(f *twin.Forecaster, round int) {
	calibration, err := f.Snapshot()
	var text []byte
	if err == nil {
		text, err = json.Marshal(keptCalibration{k.run, round, calibration})
	}
	if err == nil {
		err = os.WriteFile(k.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(k.path+".new", k.path) // never half of it
	}
	if err != nil && !k.trouble {
		k.log("how good forecasts were could not be kept", err)
	}
	k.trouble = err != nil
}

// calibrationFile keeps the calibration of a run; it is nil where the run has no folder, or cannot be distinguished from others.
func (e *execution) calibrationFile() *calibrationFile {
	if e.state == "" || e.can.Run == nil {
		return nil
	}
	path := filepath.Join(e.state, keptFile)
	return &calibrationFile{
		path: path, run: e.can.Run.Begun(),
		log: func(text string, err error) { e.log.Warn(text, "file", path, "error", err) },
	}
}

// learn shows the forecaster a round, unless that of an earlier scheduler has seen it, whose calibration it goes on from.
func (f *liveForecast) learn(r *core.Report) error {
	if k := f.kept; k != nil && k.known > 0 {
		switch {
		case r.View.Round > k.known:
			k.known = 0
		case r.Repeated:
			return nil
		default: // rounds were lost that it knows of
			k.log("how good earlier forecasts were is unknown: it is learned anew", fmt.Errorf("it knows of round %d, and the run continues with %d", k.known, r.View.Round))
			k.known, k.round, k.some = 0, 0, false
			f.forecaster = newForecaster(f.seed)
		}
	}
	return f.forecaster.ObserveRound(r)
}

// keepNow keeps what is known if it is time, or in any case.
func (f *liveForecast) keepNow(now time.Duration, anyhow bool) {
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
