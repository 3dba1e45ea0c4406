// Package fixed is arithmetic on fractions that gives the same bits everywhere: exponentials,
// logarithms and powers by frozen tables and whole numbers. The numbers that leave are part of
// Headroom's compatibility contract.
package fixed
