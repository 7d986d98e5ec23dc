import FCMModel

/// For every field that a translated message may have in v1: whether the message has something to put there.
enum V1Sources {
    typealias Source = @Sendable (Message, Notification) -> Bool

    static let byPath: [String: Source] = Self.options.merging(Self.notification) { first, _ in first }

    private static let options: [String: Source] = [
        "validate_only": { message, _ in message.dryRun },
        "message.token": { _, _ in true },
        "message.topic": { _, _ in true },
        "message.condition": { _, _ in true },
        "message.android.collapse_key": { message, _ in message.collapseKey != nil },
        "message.android.priority": { message, _ in message.priority != nil },
        "message.android.ttl": { message, _ in message.timeToLive != nil },
        "message.android.restricted_package_name": { message, _ in message.restrictedPackageName != nil },
        "message.apns.headers.apns-expiration": { message, _ in message.timeToLive != nil },
        "message.apns.headers.apns-collapse-id": { message, _ in message.collapseKey != nil },
        "message.apns.headers.apns-priority": { message, _ in message.priority != nil || message.contentAvailable },
        "message.apns.headers.apns-push-type": { message, _ in message.contentAvailable },
        "message.apns.payload.aps.content-available": { message, _ in message.contentAvailable },
        "message.apns.payload.aps.mutable-content": { message, _ in message.mutableContent },
        "message.webpush.headers.TTL": { message, _ in message.timeToLive != nil },
        "message.webpush.headers.Urgency": { message, _ in message.priority != nil },
    ]

    private static let notification: [String: Source] = [
        "message.notification.title": { _, notification in notification[.title] != nil },
        "message.notification.body": { _, notification in notification[.body] != nil },
        "message.notification.image": { _, notification in notification[.image] != nil },
        "message.android.notification.sound": { _, notification in notification[.sound] != nil },
        "message.android.notification.icon": { _, notification in notification[.icon] != nil },
        "message.android.notification.color": { _, notification in notification[.color] != nil },
        "message.android.notification.tag": { _, notification in notification[.tag] != nil },
        "message.android.notification.click_action": { _, notification in notification[.clickAction] != nil },
        "message.android.notification.channel_id": { _, notification in notification[.androidChannelID] != nil },
        "message.android.notification.title_loc_key": { _, notification in notification[.titleLocKey] != nil },
        "message.android.notification.title_loc_args": { _, notification in notification.titleLocArgs != nil },
        "message.android.notification.body_loc_key": { _, notification in notification[.bodyLocKey] != nil },
        "message.android.notification.body_loc_args": { _, notification in notification.bodyLocArgs != nil },
        "message.apns.payload.aps.badge": { _, notification in notification.badge != nil },
        "message.apns.payload.aps.sound": { _, notification in notification[.sound] != nil },
        "message.apns.payload.aps.category": { _, notification in notification[.clickAction] != nil },
        "message.apns.payload.aps.alert.title": { _, notification in notification[.title] != nil },
        "message.apns.payload.aps.alert.subtitle": { _, notification in notification[.subtitle] != nil },
        "message.apns.payload.aps.alert.body": { _, notification in notification[.body] != nil },
        "message.apns.payload.aps.alert.loc-key": { _, notification in notification[.bodyLocKey] != nil },
        "message.apns.payload.aps.alert.loc-args": { _, notification in notification.bodyLocArgs != nil },
        "message.apns.payload.aps.alert.title-loc-key": { _, notification in notification[.titleLocKey] != nil },
        "message.apns.payload.aps.alert.title-loc-args": { _, notification in notification.titleLocArgs != nil },
        "message.webpush.notification.icon": { _, notification in notification[.icon] != nil },
        "message.webpush.fcm_options.link": { _, notification in notification[.clickAction] != nil },
    ]
}
