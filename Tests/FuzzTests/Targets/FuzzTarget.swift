/// A reader of bytes from outside, and what has to hold for every input it may get.
///
/// The same targets are run by libFuzzer (`make fuzz`) and, for a short while, by the tests.
struct FuzzTarget: Sendable {
    /// The name, which is that of its folder of inputs too.
    let name: String
    /// The longest input worth trying, in bytes.
    let maxBytes: Int
    /// The most processor time that an input may take, with the fuzzer's instruments.
    let maxTime: Duration
    /// Words of the input's language, from which inputs are put together.
    let words: [String]
    /// Reads one input.
    ///
    /// A finding is thrown; whatever stops the process is a finding too.
    let check: @Sendable (_ input: [UInt8]) throws(FuzzFinding) -> Void

    init(
        _ name: String,
        maxBytes: Int,
        maxTime: Duration = .milliseconds(10),
        words: [String],
        check: @escaping @Sendable (_ input: [UInt8]) throws(FuzzFinding) -> Void
    ) {
        self.name = name
        self.maxBytes = maxBytes
        self.maxTime = maxTime
        self.words = words
        self.check = check
    }
}

extension FuzzTarget: CustomStringConvertible {
    /// The name.
    var description: String { self.name }
}

/// Something that an input showed to be wrong.
struct FuzzFinding: Error, Hashable, CustomStringConvertible {
    /// Which property does not hold, and for which values.
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Throws a finding where a property does not hold.
    static func require(_ holds: Bool, _ property: @autoclosure () -> String) throws(FuzzFinding) {
        guard holds else { throw FuzzFinding(property()) }
    }

    /// Throws a finding where two values differ.
    static func requireEqual<Value: Equatable>(
        _ first: Value,
        _ second: Value,
        _ property: @autoclosure () -> String
    ) throws(FuzzFinding) {
        guard first == second else { throw FuzzFinding("\(property()): \(first) != \(second)") }
    }
}
