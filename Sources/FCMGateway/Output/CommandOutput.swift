import ArgumentParser
import Foundation
import GatewayService
import NIOCore
import StrictJSON

/// The form of a verb's answer.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    case table
    case json

    /// True if arguments ask for JSON, even if they are invalid, so that their failure has that form too.
    static func isJSON(askedBy arguments: [String]) -> Bool {
        let own = arguments.prefix { $0 != "--" }
        return own.contains("--output=json") || zip(own, own.dropFirst()).contains { $0 == ("--output", "json") }
    }
}

/// The option of all verbs with an answer.
struct OutputOptions: ParsableArguments {
    @Option(name: .long, help: "How to print the answer.") var output: OutputFormat = .table

    var isJSON: Bool { self.output == .json }
}

/// A verb's answer, and its remarks.
struct CommandOutput: Sendable, Equatable {
    var answer: String
    /// The answer with colours, for a terminal; `nil` if the answer has no colours.
    var colouredAnswer: String?
    /// Remarks for standard error; programs get only the answer.
    var remark: String
    /// True if the answer is a refusal, so that the process must exit with 1.
    var isRefusal: Bool
    /// True if more answers follow. The verb then ends when the reader has closed the pipe.
    var isContinued = false
    /// The advice to print if the answer can't be written. Set for an answer with a secret, which can't be requested
    /// again.
    var adviceIfLost: String?

    init(_ answer: String, remark: String = "", isRefusal: Bool = false) {
        self.answer = answer
        self.remark = remark
        self.isRefusal = isRefusal
    }

    init(_ answer: StyledText, remark: String = "", isRefusal: Bool = false) {
        self.init(answer.plain, remark: remark, isRefusal: isRefusal)
        self.colouredAnswer = answer.coloured == answer.plain ? nil : answer.coloured
    }

    /// JSON text, indented.
    init(json: ByteBuffer, remark: String = "") {
        let value = try? JSONDocument(parsing: json, limits: .trusted).root
        self.init(value?.prettyText() ?? String(buffer: json), remark: remark)
    }

    static func json(_ members: (inout JSONWriter) -> Void) -> CommandOutput {
        CommandOutput(json: JSONWriter.object(members))
    }

    static func list(_ elements: [JSONValue], member: String, columns: [String], json: Bool) -> CommandOutput {
        guard !json else {
            return .json { writer in
                writer.key(member)
                writer.array(elements) { $0.value($1) }
            }
        }
        guard !elements.isEmpty else { return CommandOutput("", remark: "no \(member)") }
        return CommandOutput(TextTable(columns: columns, objects: elements).styled)
    }

    static func object(_ object: JSONValue?, columns: [String], json: Bool) -> CommandOutput {
        guard let object else { return CommandOutput("") }
        return json
            ? CommandOutput(object.prettyText()) : CommandOutput(TextTable(object: object, columns: columns).styled)
    }

    /// The output of a change without an answer: a remark for people, an object for programs.
    static func done(_ remark: String, json: Bool, _ members: (inout JSONWriter) -> Void) -> CommandOutput {
        json ? CommandOutput(json: JSONWriter.object(members), remark: remark) : CommandOutput("", remark: remark)
    }

    /// Prints the answer and the remarks.
    ///
    /// A reader that closed the pipe, such as `| head`, is not a failure, unless the answer can't be printed again.
    /// Throws `CommandFailure` if the answer could not be written. Throws `ExitCode.success` if the reader has closed
    /// the pipe but more answers would follow.
    func write() throws {
        let terminal = Terminal(.standardOutput, environment: ProcessInfo.processInfo.environment)
        let text = terminal.showsColour ? self.colouredAnswer ?? self.answer : self.answer
        var failure: StandardStream.Failure?
        if !text.isEmpty {
            do {
                try StandardStream.output.write("\(text)\n")
            } catch {
                failure = error
            }
        }
        // A remark may hold a key's id, which is needed to revoke a lost key.
        Self.remark(self.remark)
        guard let failure else { return }
        guard !failure.isClosedPipe || self.adviceIfLost != nil else {
            if self.isContinued { throw ExitCode.success }
            return
        }
        let advice = self.adviceIfLost.map { ". \($0)" } ?? ""
        throw CommandFailure("the answer can't be written to standard output: \(failure)\(advice)")
    }

    /// Prints a remark. A failure to write the remark can't be reported anywhere.
    static func remark(_ text: String) {
        guard !text.isEmpty else { return }
        try? StandardStream.errors.write("\(text)\n")
    }
}
