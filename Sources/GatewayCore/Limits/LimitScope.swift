/// What a limit counts.
package enum LimitScope: String, Sendable, Hashable, CaseIterable {
    /// Everything a tenant sends; each recipient counts.
    case tenant
    /// Messages to one device.
    case device
    /// Messages with a collapse key to one device.
    case deviceCollapsible = "device_collapsible"
    /// Messages to one topic; a condition counts on each topic it names.
    case topic
}
