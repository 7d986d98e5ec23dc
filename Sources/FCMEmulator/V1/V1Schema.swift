/// The fields of a send request (section 3 of the v1 reference).
enum V1Schema {
    /// The members of a message that name its target; at most one may be given.
    static let targets = ["token", "fid", "topic", "condition"]
    static let request: [String: V1FieldType] = [
        "validate_only": .boolean,
        "message": .message("Message", Self.message),
    ]

    private static let message: [String: V1FieldType] = [
        "name": .string,
        "token": .string,
        "fid": .string,
        "topic": .string,
        "condition": .string,
        "data": .stringMap,
        "notification": .message("Notification", ["title": .string, "body": .string, "image": .string]),
        "android": .message("AndroidConfig", Self.android),
        "apns": .message("ApnsConfig", Self.apns),
        "webpush": .message("WebpushConfig", Self.webpush),
        "fcm_options": .message("FcmOptions", ["analytics_label": .string]),
    ]

    private static let android: [String: V1FieldType] = [
        "collapse_key": .string,
        "priority": .enumeration("AndroidMessagePriority", ["NORMAL", "HIGH"], foldsCase: true),
        "ttl": .duration,
        "restricted_package_name": .string,
        "data": .stringMap,
        "notification": .message("AndroidNotification", Self.androidNotification),
        "fcm_options": .message("AndroidFcmOptions", ["analytics_label": .string]),
        "direct_boot_ok": .boolean,
        "bandwidth_constrained_ok": .boolean,
        "restricted_satellite_ok": .boolean,
    ]

    private static let androidNotification: [String: V1FieldType] = [
        "title": .string,
        "body": .string,
        "icon": .string,
        "color": .string,
        "sound": .string,
        "tag": .string,
        "click_action": .string,
        "body_loc_key": .string,
        "body_loc_args": .list(.string),
        "title_loc_key": .string,
        "title_loc_args": .list(.string),
        "channel_id": .string,
        "image": .string,
        "ticker": .string,
        "sticky": .boolean,
        "event_time": .timestamp,
        "local_only": .boolean,
        "notification_priority": .enumeration(
            "AndroidNotification.NotificationPriority",
            [
                "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH",
                "PRIORITY_MAX",
            ],
            foldsCase: false
        ),
        "default_sound": .boolean,
        "default_vibrate_timings": .boolean,
        "default_light_settings": .boolean,
        "vibrate_timings": .list(.duration),
        "visibility": .enumeration(
            "AndroidNotification.Visibility",
            ["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"],
            foldsCase: false
        ),
        "notification_count": .int32,
        "light_settings": .message(
            "LightSettings",
            ["color": .message("Color", Self.color), "light_on_duration": .duration, "light_off_duration": .duration]
        ),
        "proxy": .enumeration(
            "AndroidNotification.Proxy",
            ["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"],
            foldsCase: false
        ),
    ]

    private static let color: [String: V1FieldType] = [
        "red": .float, "green": .float, "blue": .float, "alpha": .float,
    ]

    private static let apns: [String: V1FieldType] = [
        "headers": .stringMap,
        "payload": .structure,
        "fcm_options": .message("ApnsFcmOptions", ["analytics_label": .string, "image": .string]),
        "live_activity_token": .string,
    ]

    private static let webpush: [String: V1FieldType] = [
        "headers": .stringMap,
        "data": .stringMap,
        "notification": .structure,
        "fcm_options": .message("WebpushFcmOptions", ["link": .string, "analytics_label": .string]),
    ]
}

/// The type of a field, as far as JSON distinguishes it.
indirect enum V1FieldType: Sendable {
    case string
    case boolean
    case int32
    case float
    /// Decimal seconds with the suffix `s`.
    case duration
    /// RFC 3339.
    case timestamp
    /// One of the names; the type's name is for error texts.
    case enumeration(String, [String], foldsCase: Bool)
    case list(V1FieldType)
    case stringMap
    case structure
    /// An object with these fields; the type's name is for error texts.
    case message(String, [String: V1FieldType])

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
