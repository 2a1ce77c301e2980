package results

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/cmd/mete/internal/record"
)

// Batch is a format in which a provider's batch service answers.
type Batch string

// The formats.
const (
	OpenAIBatch    Batch = "openai-batch"
	AnthropicBatch Batch = "anthropic-batch"
)

// WriteBatch writes the last record of every row as a line of a batch service's
// output, in the order in which the rows first appear. The JSON of answers
// keeps its digits and the order of its keys; other text becomes a string.
// Memory: about 24 bytes a row, and the largest body.
func WriteBatch(in *Input, format Batch, w io.Writer) error {
	convert := openAILine
	if format == AnthropicBatch {
		convert = anthropicLine
	}
	x, err := in.index(nil)
	defer x.close()
	if err != nil {
		return err
	}
	out := newOutput(w)
	e := json.NewEncoder(out.w)
	e.SetEscapeHTML(false)
	lost := int64(0)
	for row := range x.rows {
		text, err := x.line(row)
		if err != nil {
			return err
		}
		from := x.files[x.rows[row].file()].name
		r, err := record.Decode(text)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		body, err := bodyOf(r, from)
		if err != nil {
			lost++
			r.Error = &record.Error{Kind: record.IO, Phase: "body", Message: err.Error()}
		}
		if err := e.Encode(convert(r, body)); err != nil {
			return err
		}
	}
	if lost > 0 {
		in.notice("%s could not be read: their rows are errors here", plural(lost, "body", "bodies"))
	}
	return out.flush()
}

// bodyOf is the body of a record as a JSON value; nil without one.
func bodyOf(r *record.Record, from string) (json.RawMessage, error) {
	body := r.Body
	if r.BodyFile != "" {
		var err error
		if body, err = os.ReadFile(filepath.Join(filepath.Dir(from), filepath.FromSlash(r.BodyFile))); err != nil {
			return nil, err
		}
	}
	switch {
	case body == nil:
		return nil, nil
	case json.Valid(body):
		return body, nil
	case r.Encoding == record.Base64:
		return json.RawMessage(quoteJSON(base64.StdEncoding.EncodeToString(body))), nil
	}
	return json.RawMessage(quoteJSON(string(body))), nil
}

// answered reports whether the record has a whole answer of the provider.
func answered(r *record.Record) bool {
	return r.Status > 0 && !r.Truncated && (r.Error == nil || r.Error.Phase == "response")
}

func requestID(r *record.Record) string {
	for _, h := range r.Headers {
		if name := strings.ToLower(h.Name); (name == "x-request-id" || name == "request-id") && len(h.Values) > 0 {
			return h.Values[0]
		}
	}
	return ""
}

// failure is why there is no answer.
func failure(r *record.Record) (kind, message string) {
	if r.Error != nil {
		return string(r.Error.Kind), r.Error.Message
	}
	if r.Truncated {
		return string(record.BodyTooLarge), "the body was cut"
	}
	return string(record.UnknownOutcome), "there is no answer"
}

type openAIOutput struct {
	ID       string          `json:"id"`
	CustomID string          `json:"custom_id"`
	Response *openAIResponse `json:"response"`
	Error    *openAIError    `json:"error"`
}

type openAIResponse struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

type openAIError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// openAILine: an answer is a response whatever its status, and error is for
// those rows that have none.
func openAILine(r *record.Record, body json.RawMessage) any {
	out := openAIOutput{ID: fmt.Sprintf("batch_req_%016x", r.Key), CustomID: r.ID}
	if answered(r) {
		out.Response = &openAIResponse{r.Status, requestID(r), body}
		return out
	}
	kind, message := failure(r)
	out.Error = &openAIError{kind, message}
	return out
}

type anthropicOutput struct {
	CustomID string          `json:"custom_id"`
	Result   anthropicResult `json:"result"`
}

type anthropicResult struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// anthropicLine: the error of a provider that answers in its own form stays
// byte for byte, any other gets that form.
func anthropicLine(r *record.Record, body json.RawMessage) any {
	if r.OK && answered(r) && body != nil {
		return anthropicOutput{r.ID, anthropicResult{Type: "succeeded", Message: body}}
	}
	var own struct{ Error json.RawMessage }
	if !answered(r) || json.Unmarshal(body, &own) != nil || own.Error == nil {
		kind, message := failure(r)
		body = json.RawMessage(fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s}}`, quoteJSON(kind), quoteJSON(message)))
	}
	return anthropicOutput{r.ID, anthropicResult{Type: "errored", Error: body}}
}
