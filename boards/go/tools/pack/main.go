// SPDX-License-Identifier: Apache-2.0

// Pack makes a module's zip, and beside it what else a proxy has: pack FOLDER VERSION PROXY.
//
// PROXY/MODULE/@v/VERSION.zip, .info and .mod, and list, are what GOPROXY=file://PROXY serves. The same files give the
// same bytes: nothing is compressed, because each version of Go would do that in its own way, and there are no dates.
package main

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pack FOLDER VERSION PROXY")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack(folder, version, proxy string) error {
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	name := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if name == nil {
		return fmt.Errorf("%s/go.mod names no module", folder)
	}
	module := string(name[1])
	there := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(there, 0o777); err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":\"1980-01-01T00:00:00Z\"}\n", version)
	for file, text := range map[string][]byte{
		version + ".mod": mod, version + ".info": []byte(info), "list": []byte(version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(there, file), text, 0o666); err != nil {
			return err
		}
	}
	return writeZip(filepath.Join(there, version+".zip"), folder, module+"@"+version+"/")
}

func writeZip(path, folder, prefix string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	out := zip.NewWriter(file)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		to, err := out.CreateHeader(&zip.FileHeader{Name: prefix + entry.Name(), Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return file.Close()
}
