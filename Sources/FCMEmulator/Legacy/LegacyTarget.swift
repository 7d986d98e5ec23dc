/// Whom a legacy message addresses.
enum LegacyTarget: Sendable, Equatable {
    /// `to` with a registration token, or a form's `registration_id`.
    case device(String)
    /// `registration_ids`.
    case devices([String])
    /// `to` with `/topics/<name>`; the value is the name.
    case topic(String)
    /// `condition`.
    case condition(ConditionEvaluator)

    /// How many results the answer lists; none when the answer has the shape of T6.
    var resultCount: Int? {
        switch self {
        case .device: 1
        case .devices(let tokens): tokens.count
        case .topic, .condition: nil
        }
    }
}
