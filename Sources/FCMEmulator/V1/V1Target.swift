/// Whom a v1 message addresses.
enum V1Target: Sendable, Equatable {
    /// `token`, or `fid`.
    case device(String)
    /// `topic`; the value is the name.
    case topic(String)
    /// `condition`.
    case condition(ConditionEvaluator)
}
