module outcrop.invalid/cgo

go 1.21
