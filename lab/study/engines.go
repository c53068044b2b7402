package study

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"text/template"
)

// Shards are the parts of a study that an engine runs.
type Shards struct {
	Name         string   // of the study
	Study        string   // path of the file of the study
	Rename       bool     // the name is another than that of its file
	Plugins      []string // folders with plugins
	Out          string   // folder of studies
	Dir          string   // folder of the study
	Count        int      // number of shards
	Image, Claim string   // of Kubernetes: a container image, and a volume claim with the working folder
}

// Join is the command that joins the shards.
func (s Shards) Join() string { return "quartet bench merge " + operand(s.Dir) }

// Command is the beginning of the command that runs a shard.
func (s Shards) Command() string {
	words := []string{"exec", "quartet", "bench", operand(s.Study), "--out", ShellQuoted(s.Out)}
	if s.Rename {
		words = append(words, "--name", ShellQuoted(s.Name))
	}
	for _, folder := range s.Plugins {
		words = append(words, "--plugin-dir", ShellQuoted(folder))
	}
	return strings.Join(words, " ")
}

// operand is a path as a word of a shell that no program takes for a flag.
func operand(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return ShellQuoted(path)
}

// engineTemplates are parsed when one is needed first.
var engineTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"option": optionQuoted, "label": label,
		"percent": func(text string) string { return strings.ReplaceAll(text, "%", "%%") }, // signs of a file name, for Slurm
		"yaml":    func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" },
	}).Parse(`
{{- define "slurm" -}}
#!/bin/sh
#SBATCH --job-name={{.Name}}
#SBATCH --array=1-{{.Count}}
#SBATCH --cpus-per-task=2
#SBATCH --output={{option (printf "%s/slurm-%%a.log" (percent .Dir))}}
# One task for each shard of a study. When all have ended: {{.Join}}
{{.Command}} --shard "$SLURM_ARRAY_TASK_ID/{{.Count}}" -j "${SLURM_CPUS_PER_TASK:-2}"
{{end}}
{{- define "kubernetes" -}}
# One pod for each shard of a study. When all have ended: {{.Join}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{label .Name}}
spec:
  completionMode: Indexed
  completions: {{.Count}}
  parallelism: {{.Count}}
  backoffLimitPerIndex: 2
  maxFailedIndexes: {{.Count}}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: quartet
          image: {{yaml .Image}}
          workingDir: /work
          command: [sh, -c]
          args:
            - {{yaml (printf "%s --shard \"$((JOB_COMPLETION_INDEX + 1))/%d\" -j 2" .Command .Count)}}
          resources:
            requests: {cpu: "2", memory: 2Gi}
          volumeMounts:
            - {name: work, mountPath: /work}
      volumes:
        - name: work
          persistentVolumeClaim: {claimName: {{yaml .Claim}}}
{{end}}`))
})

// Slurm is a script for sbatch: an array job with a task for each shard.
func (s Shards) Slurm() []byte { return s.render("slurm") }

// Kubernetes is the manifest of an indexed Job with a pod for each shard.
func (s Shards) Kubernetes() []byte { return s.render("kubernetes") }

func (s Shards) render(name string) []byte {
	var b bytes.Buffer
	if err := engineTemplates().ExecuteTemplate(&b, name, s); err != nil {
		panic(err) // the templates fit the struct: a mistake in this package
	}
	return b.Bytes()
}

// optionQuoted is a text as a value of a line of #SBATCH, which knows quotes but no shell.
func optionQuoted(text string) string {
	if !strings.ContainsAny(text, " \t\"'#\\") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// ShellQuoted is a text as one word of a shell.
func ShellQuoted(text string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("-_./=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// label is a name as Kubernetes takes it: at most 63 small letters, digits and hyphens, and no hyphen at an end. The name of a pod
// ends in the index of its shard besides. A name that is cut, or of which nothing is left, is told from others by a hash.
func label(name string) string {
	const most = 40
	mapped := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	parts := []string{"quartet"}
	short := strings.Trim(mapped[:min(len(mapped), most)], "-")
	if short != "" {
		parts = append(parts, short)
	}
	if short == "" || len(mapped) > most {
		parts = append(parts, fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(name))))
	}
	return strings.Join(parts, "-")
}
