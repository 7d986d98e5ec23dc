/// What a caller can do to a device group; the raw value is the action's name in the audit and in metrics.
enum GroupAction: String, Sendable, Hashable, CaseIterable {
    case put = "device_group.put"
    case add = "device_group.add"
    case remove = "device_group.remove"
    case delete = "device_group.delete"
    case lookUp = "device_group.look_up"
    case get = "device_group.get"
    case list = "device_group.list"
}
