/// A parser of untrusted bytes, with the properties that hold for every input.
///
/// libFuzzer (`make fuzz`) and, for a short time, the tests run the same targets.
struct FuzzTarget: Sendable {
    /// The name of the target and of its folder of inputs.
    let name: String
    /// The longest input worth trying, in bytes.
    let maxBytes: Int
    /// The most processor time that an input may take, with the fuzzer's instrumentation.
    let maxTime: Duration
    /// Words of the input's language, for building inputs.
    let words: [String]
    /// Checks one input. It throws a finding; an input that stops the process is a finding too.
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
    var description: String { self.name }
}

/// A property that does not hold for an input.
struct FuzzFinding: Error, Hashable, CustomStringConvertible {
    /// The property and the values for which it does not hold.
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Throws a finding if a property does not hold.
    static func require(_ holds: Bool, _ property: @autoclosure () -> String) throws(FuzzFinding) {
        guard holds else { throw FuzzFinding(property()) }
    }

    /// Throws a finding if two values differ.
    static func requireEqual<Value: Equatable>(
        _ first: Value,
        _ second: Value,
        _ property: @autoclosure () -> String
    ) throws(FuzzFinding) {
        guard first == second else { throw FuzzFinding("\(property()): \(first) != \(second)") }
    }
}
