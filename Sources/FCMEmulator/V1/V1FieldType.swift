/// The type of a field, as far as JSON shows it.
indirect enum V1FieldType: Sendable {
    case string
    case boolean
    case int32
    case float
    /// Decimal seconds with the suffix `s`.
    case duration
    /// RFC 3339.
    case timestamp
    /// One of the names; the type's name is for messages.
    case enumeration(String, [String], foldsCase: Bool)
    case list(V1FieldType)
    /// Names to strings.
    case stringMap
    /// Any JSON object.
    case structure
    /// An object of these fields; the type's name is for messages.
    case message(String, [String: V1FieldType])

    /// The type's name in the front end's texts.
    var name: String {
        switch self {
        case .string, .stringMap: "TYPE_STRING"
        case .boolean: "TYPE_BOOL"
        case .int32: "TYPE_INT32"
        case .float: "TYPE_FLOAT"
        case .duration: "type.googleapis.com/google.protobuf.Duration"
        case .timestamp: "type.googleapis.com/google.protobuf.Timestamp"
        case .structure: "type.googleapis.com/google.protobuf.Struct"
        case .list(let element): element.name
        case .enumeration(let name, _, _), .message(let name, _): "type.googleapis.com/google.firebase.fcm.v1." + name
        }
    }
}
