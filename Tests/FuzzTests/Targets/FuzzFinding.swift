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
