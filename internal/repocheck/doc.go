// Package repocheck has tests of the repository as a whole: import rules,
// naming rules, and the agreement of documentation and fixtures with the code.
// It has no code besides tests.
package repocheck
