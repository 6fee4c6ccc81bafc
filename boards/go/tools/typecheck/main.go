// SPDX-License-Identifier: Apache-2.0

// Typecheck says whether a package without dependencies would compile on other systems, without compiling the standard
// library for each: typecheck FOLDER SYSTEM/PROCESSOR...
package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	for _, target := range os.Args[2:] {
		parts := strings.SplitN(target, "/", 2)
		build.Default.GOOS, build.Default.GOARCH, build.Default.CgoEnabled = parts[0], parts[1], false
		if err := check(os.Args[1], parts[1]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			os.Exit(1)
		}
	}
}

func check(folder, processor string) error {
	found, err := build.ImportDir(folder, 0)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(folder, name), nil, 0)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil), Sizes: types.SizesFor("gc", processor)}
	_, err = config.Check(found.Name, files, parsed, nil)
	return err
}
