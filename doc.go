package mete
