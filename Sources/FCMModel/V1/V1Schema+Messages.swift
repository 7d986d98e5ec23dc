extension V1Schema {
    /// The body of `messages:send`.
    static let request = V1Schema(["validate_only": .flag, "message": .message(Self.message)])

    /// A message (http-v1, section 3).
    static let message = V1Schema([
        "name": .text,
        "token": .text,
        "fid": .text,
        "topic": .text,
        "condition": .text,
        "data": .textMap,
        "notification": .message(Self.notification),
        "android": .message(Self.android),
        "apns": .message(Self.apns),
        "webpush": .message(Self.webpush),
        "fcm_options": .message(Self.options),
    ])

    /// `notification`, for all platforms.
    static let notification = V1Schema(["title": .text, "body": .text, "image": .text])

    /// `android`.
    static let android = V1Schema([
        "collapse_key": .text,
        "priority": .choice(["NORMAL", "HIGH"], inAnyCase: true),
        "ttl": .timeToLive,
        "restricted_package_name": .text,
        "data": .textMap,
        "notification": .message(Self.androidNotification),
        "fcm_options": .message(Self.options),
        "direct_boot_ok": .flag,
        "bandwidth_constrained_ok": .flag,
        "restricted_satellite_ok": .flag,
    ])

    /// `android.notification`.
    static let androidNotification = V1Schema([
        "title": .text,
        "body": .text,
        "icon": .text,
        "color": .color,
        "sound": .text,
        "tag": .text,
        "click_action": .text,
        "body_loc_key": .text,
        "body_loc_args": .texts,
        "title_loc_key": .text,
        "title_loc_args": .texts,
        "channel_id": .text,
        "image": .text,
        "ticker": .text,
        "sticky": .flag,
        "event_time": .text,
        "local_only": .flag,
        "notification_priority": .choice(
            ["PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH", "PRIORITY_MAX"],
            inAnyCase: false
        ),
        "default_sound": .flag,
        "default_vibrate_timings": .flag,
        "default_light_settings": .flag,
        "vibrate_timings": .durations,
        "visibility": .choice(["PRIVATE", "PUBLIC", "SECRET"], inAnyCase: false),
        "notification_count": .count,
        "light_settings": .message(Self.lightSettings),
        "proxy": .choice(["ALLOW", "DENY", "IF_PRIORITY_LOWERED"], inAnyCase: false),
    ])

    /// `apns`.
    static let apns = V1Schema([
        "headers": .textMap,
        "payload": .structure,
        "fcm_options": .message(Self.apnsOptions),
        "live_activity_token": .text,
    ])

    /// `webpush`.
    static let webpush = V1Schema([
        "headers": .textMap,
        "data": .textMap,
        "notification": .structure,
        "fcm_options": .message(Self.webpushOptions),
    ])

    private static let lightSettings = V1Schema([
        "color": .message(V1Schema(["red": .number, "green": .number, "blue": .number, "alpha": .number])),
        "light_on_duration": .duration,
        "light_off_duration": .duration,
    ])

    private static let options = V1Schema(["analytics_label": .label])
    private static let apnsOptions = V1Schema(["analytics_label": .label, "image": .text])

    /// `webpush.fcm_options`.
    static let webpushOptions = V1Schema(["link": .link, "analytics_label": .label])
}
