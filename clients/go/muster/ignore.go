package muster

import (
	"bytes"
	"strings"
)

// The files that stay behind, by the rules of .gitignore files (docs/files.md), as clients/cpp/uploads has them. Later patterns
// win over earlier ones, so files are added from the outermost inwards.
type ignoreRules struct{ rules []ignoreRule }

// One line of a file.
type ignoreRule struct {
	base            string // the directory of the file: empty, or ends with '/'
	negated         bool
	directoriesOnly bool
	namesOnly       bool
	tokens          []globToken // nil: an empty line, or one that matches nothing
}

type globKind int

const (
	oneByte      globKind = iota // a byte of the set
	anyBytes                     // '*': any bytes but '/'
	directories                  // "**/": any directories
	anything                     // "**" at the end
	noMoreTokens = -1
)

type globToken struct {
	kind globKind
	set  *[256]bool
}

// add takes the patterns of a file in the directory base.
func (r *ignoreRules) add(data []byte, base string) {
	for line := range strings.SplitSeq(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if !strings.HasPrefix(line, "#") {
			r.rules = append(r.rules, newIgnoreRule(base, line))
		}
	}
}

func (r *ignoreRules) leaveOut(path string, isDirectory bool) bool {
	for at := len(r.rules) - 1; at >= 0; at-- {
		rule := &r.rules[at]
		if strings.HasPrefix(path, rule.base) && rule.matches(path[len(rule.base):], isDirectory) {
			return !rule.negated
		}
	}
	return false
}

func newIgnoreRule(base, line string) ignoreRule {
	line = withoutTrailingSpaces(line)
	rule := ignoreRule{base: base}
	line, rule.negated = strings.CutPrefix(line, "!")
	line, rule.directoriesOnly = strings.CutSuffix(line, "/")
	rule.namesOnly = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line != "" {
		rule.tokens = parseGlob(line)
	}
	return rule
}

func (r *ignoreRule) matches(path string, isDirectory bool) bool {
	if r.tokens == nil || r.directoriesOnly && !isDirectory {
		return false
	}
	if r.namesOnly {
		path = path[strings.LastIndex(path, "/")+1:]
	}
	return matchGlob(r.tokens, path)
}

// withoutTrailingSpaces keeps a space at the end only after a backslash.
func withoutTrailingSpaces(line string) string {
	end := 0
	for at := 0; at < len(line); at++ {
		if line[at] == '\\' {
			at = min(at+1, len(line)-1)
			end = at + 1
		} else if line[at] != ' ' {
			end = at + 1
		}
	}
	return line[:end]
}

// parseGlob returns nil for a pattern that matches nothing.
func parseGlob(glob string) []globToken {
	var found []globToken
	for at := 0; at < len(glob); {
		switch glob[at] {
		case '*':
			begin := at
			for at < len(glob) && glob[at] == '*' {
				at++
			}
			after := begin == 0 || glob[begin-1] == '/'
			last := at == len(glob)
			switch {
			case at-begin < 2 || !after || !last && glob[at] != '/':
				found = append(found, globToken{kind: anyBytes})
			case last:
				found = append(found, globToken{kind: anything})
			default:
				found = append(found, globToken{kind: directories})
				at++
			}
		case '?':
			found = append(found, globToken{set: setWithout('/')})
			at++
		case '[':
			set, next := brackets(glob, at)
			if set == nil {
				return nil
			}
			found = append(found, globToken{set: set})
			at = next
		default:
			if glob[at] == '\\' {
				at++
			}
			if at == len(glob) {
				return nil
			}
			set := &[256]bool{}
			set[glob[at]] = true
			found = append(found, globToken{set: set})
			at++
		}
	}
	return found
}

func setWithout(one byte) *[256]bool {
	set := &[256]bool{}
	for value := range set {
		set[value] = byte(value) != one
	}
	return set
}

// brackets reads those that begin at `at`; nil: they do not end, and the pattern matches nothing.
func brackets(glob string, at int) (*[256]bool, int) {
	at++
	negated := at < len(glob) && (glob[at] == '!' || glob[at] == '^')
	if negated {
		at++
	}
	set := &[256]bool{}
	for first := true; ; first = false {
		if at >= len(glob) {
			return nil, at
		}
		if glob[at] == ']' && !first {
			break
		}
		if strings.HasPrefix(glob[at:], "[:") {
			if end := strings.Index(glob[at+2:], ":]"); end >= 0 {
				if !addClass(set, glob[at+2:at+2+end]) {
					return nil, at
				}
				at += end + 4
				continue
			}
		}
		low, next := takeByte(glob, at)
		if low < 0 {
			return nil, at
		}
		high := low
		at = next
		if at+1 < len(glob) && glob[at] == '-' && glob[at+1] != ']' {
			if high, at = takeByte(glob, at+1); high < 0 {
				return nil, at
			}
		}
		for value := low; value <= high; value++ {
			set[value] = true
		}
	}
	if negated {
		for value := range set {
			set[value] = !set[value]
		}
	}
	set['/'] = false
	return set, at + 1
}

func takeByte(glob string, at int) (int, int) {
	if at < len(glob) && glob[at] == '\\' {
		at++
	}
	if at >= len(glob) {
		return noMoreTokens, at
	}
	return int(glob[at]), at + 1
}

// addClass adds a class of POSIX among ASCII.
func addClass(set *[256]bool, name string) bool {
	ranges, known := map[string]string{"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09",
		"graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf"}[name]
	for at := 0; at < len(ranges); at += 2 {
		for value := int(ranges[at]); value <= int(ranges[at+1]); value++ {
			set[value] = true
		}
	}
	return known
}

// matchGlob follows all ways through the tokens at the same time, so that no pattern costs more than tokens times bytes.
func matchGlob(tokens []globToken, path string) bool {
	states := make([]bool, len(tokens)+1)
	enter(tokens, states, 0)
	for at := 0; at < len(path); at++ {
		next := make([]bool, len(tokens)+1)
		for place, token := range tokens {
			switch {
			case !states[place]:
			case token.kind == oneByte && token.set[path[at]]:
				enter(tokens, next, place+1)
			case token.kind == anyBytes && path[at] != '/', token.kind == anything:
				enter(tokens, next, place)
			case token.kind == directories:
				next[place] = true
				// They end with a slash alone.
				if path[at] == '/' {
					enter(tokens, next, place+1)
				}
			}
		}
		states = next
	}
	return states[len(tokens)]
}

// enter reaches a token, and those behind it if it may stand for nothing.
func enter(tokens []globToken, states []bool, place int) {
	for ; ; place++ {
		states[place] = true
		if place == len(tokens) || tokens[place].kind == oneByte {
			return
		}
	}
}
