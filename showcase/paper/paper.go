// Package paper writes the page that sets our figures beside the paper's: for each experiment what
// it shows, the table, the verdicts, the plots, and what does not reproduce. Text is written by
// hand; every number comes from the results.
package paper

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/headroom-lb/headroom/showcase/experiment"
)

// File is one file of the page, by its path from the folder of the docs.
type File struct {
	Path string
	Text []byte
}

// page is the template of the whole.
//
//go:embed page.md.tmpl
var page string

// entry is one experiment as the template sees it.
type entry struct {
	*experiment.Result
	Shows   string // the text of the experiment's template
	Differs string // its block of that name
	Plots   []plot
	Command string
}

// plot is one figure.
type plot struct{ Title, Path string }

// Write makes the files. An experiment's own text is a template: what stands in it is what the
// experiment shows, and its block "differs" is what does not reproduce and why. In both,
//
//	{{median "p99" "1.74" "prequal"}}
//
// is the median of a column for the one case that has these keys; so are mean, least, most, and
// paper, the published figure. It is an error to ask for a figure that is not there.
func Write(results []*experiment.Result) ([]File, error) {
	var files []File
	var entries []entry
	for _, r := range results {
		e := entry{Result: r}
		for i, f := range r.Figures() {
			name := PlotName("paper/"+r.Experiment+".svg", i)
			files = append(files, File{name, f.SVG()})
			e.Plots = append(e.Plots, plot{f.Title, name})
		}
		var err error
		if e.Shows, e.Differs, err = texts(r); err != nil {
			return nil, fmt.Errorf("text of %s: %w", r.Experiment, err)
		}
		entries = append(entries, e)
	}
	t := template.Must(template.New("page").Funcs(template.FuncMap{
		"cell": func(s string) string { return strings.ReplaceAll(s, "|", `\|`) },
		"rule": func(head []string) string { return strings.Repeat("| --- ", len(head)) + "|" },
	}).Parse(page))
	var b bytes.Buffer
	if err := t.Execute(&b, entries); err != nil {
		return nil, err
	}
	return append(files, File{"paper.md", b.Bytes()}), nil
}

// PlotName is the path of an experiment's plot: the first has the one that is given, and the next
// ones a number.
func PlotName(path string, i int) string {
	if i == 0 {
		return path
	}
	return fmt.Sprintf("%s-%d.svg", strings.TrimSuffix(path, ".svg"), i+1)
}

// texts fills in an experiment's template.
func texts(r *experiment.Result) (shows, differs string, err error) {
	figure := func(of func(experiment.Cell) float64) func(string, ...string) (string, error) {
		return func(column string, keys ...string) (string, error) {
			cell, err := r.Cell(column, keys...)
			if err != nil {
				return "", err
			}
			return r.Show(column, of(cell)), nil
		}
	}
	t, err := template.New("shows").Funcs(template.FuncMap{
		"median": figure(func(c experiment.Cell) float64 { m, _, _ := c.Spread(); return m }),
		"least":  figure(func(c experiment.Cell) float64 { _, l, _ := c.Spread(); return l }),
		"most":   figure(func(c experiment.Cell) float64 { _, _, m := c.Spread(); return m }),
		"mean":   figure(experiment.Cell.Mean),
		"paper":  r.Paper,
	}).Parse(r.Text())
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return "", "", err
	}
	shows = strings.TrimSpace(b.String())
	if t.Lookup("differs") == nil {
		return shows, "", nil
	}
	b.Reset()
	err = t.ExecuteTemplate(&b, "differs", nil)
	return shows, strings.TrimSpace(b.String()), err
}

// Failing are the lines of an experiment that fail, known or not, as the template asks for them.
func (e entry) Failing() []experiment.Outcome {
	var out []experiment.Outcome
	for _, l := range e.Lines {
		if l.Missing == nil && !l.Holds {
			out = append(out, l)
		}
	}
	return out
}

// Grid is the experiment's table.
func (e entry) Grid() grid {
	head, rows := e.Table()
	return grid{head, rows}
}

type grid struct {
	Head []string
	Rows [][]string
}

// Row is a line of the table of verdicts.
type Row struct{ ID, Says, Verdict, Why string }

// Verdicts is that table.
func (e entry) Verdicts() []Row {
	var out []Row
	for _, l := range e.Lines {
		verdict, why := l.Summary()
		out = append(out, Row{l.ID, l.Says, verdict, why})
	}
	return out
}
