package import FCMModel
package import StrictJSON

/// What is wrong with one field of a body.
package struct FieldProblem: Sendable, Hashable {
    /// The kind of fault.
    package var code: OutcomeCode
    /// Where it is.
    package var pointer: JSONPointer
    /// What a developer should change.
    ///
    /// Never repeats a value.
    package var detail: String
}
