package template

import "text/template/parse"

// pipe checks that a pipeline uses known columns and functions only, and that
// nothing in it can fail for every row.
func (c *compiler) pipe(p *parse.PipeNode, dot bool) error {
	if p.IsAssign {
		return c.errorf(int(p.Decl[0].Pos), "a variable is set once, with :=")
	}
	for i, cmd := range p.Cmds {
		if err := c.command(cmd, i > 0, i == len(p.Cmds)-1, dot); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) command(cmd *parse.CommandNode, piped, last, dot bool) error {
	id, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok {
		if err := c.operand(cmd.Args[0], dot); err != nil {
			return err
		}
		if len(cmd.Args) > 1 {
			return c.errorf(int(cmd.Args[1].Position()), `a column takes no arguments: one whose name has a blank in it is written {{index . "my col"}}`)
		}
		if piped {
			return c.errorf(int(cmd.Args[0].Position()), "only a function can follow |")
		}
		return nil
	}
	at, name := int(id.Pos), id.Ident
	f, known := functions[name]
	if !known {
		return c.unknownFunction(at, name)
	}
	n := len(cmd.Args) - 1
	if piped {
		n++
	}
	switch {
	case n < f.least:
		return c.errorf(at, "%s wants a value: {{%s .column}}", name, name)
	case n > f.most:
		return c.errorf(at, "%s is given %d values, it takes %d", name, n, f.most)
	case name == "raw" && !last:
		return c.errorf(at, "raw must come last: the functions after it undo it")
	case name == "index":
		return c.indexOperands(cmd, piped, dot)
	case name == "env":
		return c.envOperand(cmd, at)
	}
	for _, arg := range cmd.Args[1:] {
		if err := c.operand(arg, dot); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) unknownFunction(at int, name string) error {
	if near := Nearest(name, c.row.names); near == name {
		return c.errorf(at, "a column is written with a dot: {{.%s}}", name)
	}
	names := functionNames()
	if near := Nearest(name, names); near != "" {
		return c.errorf(at, "unknown function %q (did you mean %q?)", name, near)
	}
	return c.errorf(at, "unknown function %q: there are %s; a column is written with a dot", name, list(names))
}

// operand checks a value.
func (c *compiler) operand(n parse.Node, dot bool) error {
	at := int(n.Position())
	switch n := n.(type) {
	case *parse.FieldNode:
		if !dot {
			return c.errorf(at, "inside {{with}} the dot is its value: write {{$%s}}", n)
		}
		return c.field(at, n.Ident)
	case *parse.VariableNode:
		switch {
		case n.Ident[0] == "$" && len(n.Ident) > 1:
			return c.field(at, n.Ident[1:])
		case n.Ident[0] == "$":
			return c.errorf(at, "{{$}} is the whole row: name a column, {{$.column}}")
		case len(n.Ident) > 1:
			return c.errorf(at, "a column is text and has no fields")
		}
		return nil
	case *parse.DotNode:
		if dot {
			return c.errorf(at, "{{.}} is the whole row: name a column, {{.column}}")
		}
		return nil
	case *parse.StringNode:
		return nil
	case *parse.NumberNode:
		return c.errorf(at, "columns are text: write %q, in quotes", n.Text)
	case *parse.BoolNode, *parse.NilNode:
		return c.errorf(at, "columns are text: write \"%s\", in quotes", n)
	case *parse.PipeNode:
		if name, ok := lastFunction(n); ok && name == "raw" {
			return c.errorf(c.column(n), "raw must come last: the functions after it undo it")
		}
		return c.pipe(n, dot)
	case *parse.IdentifierNode:
		if _, known := functions[n.Ident]; known {
			return c.errorf(at, "a function as a value is put in parentheses: (%s …)", n.Ident)
		}
		return c.errorf(at, "unknown word %q: a column is written with a dot, text in quotes", n.Ident)
	}
	return c.errorf(at, "a column is text and has no fields")
}

func (c *compiler) field(at int, path []string) error {
	if err := c.known(at, path[0]); err != nil {
		return err
	}
	if len(path) > 1 {
		return c.errorf(at, `a column is text and has no fields: one whose name has a dot in it is written {{index . "a.b"}}`)
	}
	return nil
}

// known checks the name of a column.
func (c *compiler) known(at int, name string) error {
	if _, ok := c.row.index[name]; ok {
		return nil
	}
	if c.row.open {
		c.row.index[name] = len(c.row.names)
		c.row.names = append(c.row.names, name)
		return nil
	}
	hint := ""
	if near := Nearest(name, c.row.names); near != "" {
		hint = " (did you mean " + quote(near) + "?)"
	}
	e := c.errorf(at, "unknown column %s%s: there are %s", quote(name), hint, list(c.row.names))
	if len(c.row.names) == 1 {
		e.Message = "unknown column " + quote(name) + hint + ": the only one is " + list(c.row.names)
	}
	return e
}

// indexOperands checks {{index . "name"}}.
func (c *compiler) indexOperands(cmd *parse.CommandNode, piped, dot bool) error {
	at := int(cmd.Args[0].Position())
	if piped || len(cmd.Args) != 3 {
		return c.errorf(at, `index takes the row and a name: {{index . "my col"}}`)
	}
	row := false
	switch n := cmd.Args[1].(type) {
	case *parse.DotNode:
		row = dot
	case *parse.VariableNode:
		row = len(n.Ident) == 1 && n.Ident[0] == "$"
	}
	name, ok := cmd.Args[2].(*parse.StringNode)
	if !row || !ok {
		return c.errorf(at, `index takes the row and a name in quotes: {{index $ "my col"}}`)
	}
	return c.known(int(name.Pos), name.Text)
}

// envOperand checks {{env "NAME"}}; the value is looked up here only, so that a
// missing one is told before the first row.
func (c *compiler) envOperand(cmd *parse.CommandNode, at int) error {
	if len(cmd.Args) != 2 {
		return c.errorf(at, `env takes a name in quotes: {{env "NAME"}}`)
	}
	name, ok := cmd.Args[1].(*parse.StringNode)
	if !ok {
		return c.errorf(at, `env takes a name in quotes: {{env "NAME"}}`)
	}
	if c.env != nil {
		if _, ok := c.env(name.Text); ok {
			return nil
		}
	}
	return c.errorf(int(name.Pos), "variable %s is not set or not allowed in templates", quote(name.Text))
}
