package mete

type keeper struct{}

func openKeeper(dir string, g *Gate) (*keeper, error) { return &keeper{}, nil }
func (k *keeper) touch()                              {}
func (k *keeper) close() error                        { return nil }
