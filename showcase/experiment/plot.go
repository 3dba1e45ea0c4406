package experiment

// Plot describes a picture of an experiment's figures.
type Plot struct {
	Title  string
	X      string   // the key along the x axis: a scale if its values begin with numbers, else rows
	Y      []string // columns, a panel for each
	Series string   // the key that tells series apart
	Where  []string // only cases that have these keys; empty for all
	Lead   string   // the series to look at
	LogX   bool
	LogY   bool
}
