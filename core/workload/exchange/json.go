package exchange

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// expect reads a delimiter of JSON.
func expect(d *json.Decoder, delimiter json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != delimiter {
		return fmt.Errorf("expected %v, found %v", delimiter, token)
	}
	return nil
}

// ended reports what follows the last value of JSON.
func ended(d *json.Decoder, what string) error {
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the " + what)
	}
	return nil
}

// elements reads an array of JSON into the same value again and again, each time after reset. An element that is not of its form is a
// row that is dropped for the reason malformed.
func (in *importer) elements(d *json.Decoder, into any, reset, row func(), malformed string) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		if in.tally.rows++; in.tally.rows%chunk == 0 && in.Err() != nil {
			return in.Err()
		}
		reset()
		err := d.Decode(into)
		if err == nil {
			row()
			continue
		}
		mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok && !errors.Is(err, errText) {
			return err
		}
		field := ""
		if ok {
			field = mistyped.Field
		}
		in.tally.drop(malformed, in.tally.rows, cmp.Or(field, err.Error()))
	}
	return expect(d, ']')
}

// notJSON is the error of a log that is not the JSON that it should be.
func (in *importer) notJSON(d *json.Decoder, err error, what, hint string) error {
	if in.Err() != nil {
		return in.Err()
	}
	return in.problem(0, fmt.Sprintf("is no %s: %v, at byte %d", what, cutShort(err), d.InputOffset()), hint)
}
