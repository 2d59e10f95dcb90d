/** The form of a question: a value for each field. */

import { type FormEvent, useId, useState } from "react";
import { problemOf } from "../actions/bulk";
import { CallError } from "../api/client";
import type { PauseField } from "../api/types";
import { firstTexts, readAnswers, type Texts, textOf, WHOLE } from "./answers";

interface AnswerFormProps {
  fields: readonly PauseField[];
  /** What the button says. */
  label: string;
  /** Send the answers, a JSON object. An error is shown, that of a field beside it. */
  send: (input: string) => Promise<void>;
}

export function AnswerForm({ fields, label, send }: AnswerFormProps) {
  const [texts, setTexts] = useState<Texts>(() => firstTexts(fields));
  const [problems, setProblems] = useState<Texts>({});
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const answers = readAnswers(fields, texts);
    setProblem("");
    setProblems("problems" in answers ? answers.problems : {});
    if ("problems" in answers) return;
    setSending(true);
    try {
      await send(answers.input);
    } catch (error) {
      if (error instanceof CallError && error.status === 422) setProblems(error.fields);
      setProblem(problemOf(error));
    } finally {
      setSending(false);
    }
  };

  const shown = fields.length > 0 ? fields : [{ name: WHOLE, type: "object", prompt: "Answer (JSON)" } as const];
  return (
    <form onSubmit={(event) => void submit(event)}>
      {shown.map((field) => (
        <Field
          key={field.name}
          field={field}
          text={texts[field.name] ?? ""}
          problem={problems[field.name] ?? ""}
          onChange={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {problem !== "" && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" className="primary" disabled={isSending}>
        {label}
      </button>
    </form>
  );
}

interface FieldProps {
  field: PauseField;
  text: string;
  problem: string;
  onChange: (text: string) => void;
}

function Field({ field, text, problem, onChange }: FieldProps) {
  const id = useId();
  const common = {
    id,
    value: text,
    "aria-invalid": problem !== "",
    "aria-describedby": `${id}-problem`,
    onChange: ({ target }: { target: { value: string } }) => onChange(target.value),
  };
  const isOptional = field.required === false || field.default != null;
  const options = field.type === "boolean" ? [true, false] : field.type === "array" ? undefined : field.options;
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.prompt || field.name}
        {isOptional && " (optional)"}
      </label>
      {options !== undefined ? (
        <select {...common}>
          <option value="">{isOptional ? "the default" : "choose"}</option>
          {options.map((each) => (
            <option key={textOf(field, each)} value={textOf(field, each)}>
              {each === true ? "yes" : each === false ? "no" : typeof each === "string" ? each : textOf(field, each)}
            </option>
          ))}
        </select>
      ) : field.type === "array" || field.type === "object" ? (
        <textarea {...common} rows={4} spellCheck={false} placeholder={field.type === "array" ? "[]" : "{}"} />
      ) : (
        <input {...common} type="text" inputMode={field.type === "number" ? "decimal" : "text"} autoComplete="off" />
      )}
      {field.type === "array" && field.options && <p className="quiet">of {JSON.stringify(field.options)}</p>}
      <p id={`${id}-problem`} className={problem === "" ? "" : "problem"}>
        {problem}
      </p>
    </div>
  );
}
