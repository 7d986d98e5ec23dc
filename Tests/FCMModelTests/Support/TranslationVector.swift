import NIOCore
import Testing

/// One vector of `translate.json`: a legacy request and the v1 calls that it becomes.
struct TranslationVector: Sendable, CustomTestStringConvertible {
    let id: String
    let now: Int
    let body: ByteBuffer
    let calls: [VectorJSON]
    let localErrors: [Int: String]

    var testDescription: String { self.id }

    static func all() throws -> [TranslationVector] {
        try VectorFile.read("translate").map { try TranslationVector($0) }
    }

    private init(_ value: VectorJSON) throws {
        var members = try value.members()
        self.id = try members.takeHeading()
        self.now = try members.take("now").integer()
        if let request = members.takeIfPresent("request") {
            self.body = request.serialised()
        } else {
            self.body = ByteBuffer(string: try members.take("body").text())
        }
        var expect = try members.take("expect").members()
        self.calls = try expect.take("calls").elements()
        self.localErrors = try Self.localErrors(expect.takeIfPresent("local_errors"))
        try expect.finish()
        try members.finish()
    }

    /// Reads errors by index.
    static func localErrors(_ value: VectorJSON?) throws -> [Int: String] {
        var errors: [Int: String] = [:]
        guard var members = try value?.members() else { return errors }
        for member in members.takeAll() {
            guard let index = Int(member.key) else { throw VectorProblem("\(member.key) is no index") }
            errors[index] = try member.value.text()
        }
        return errors
    }
}
