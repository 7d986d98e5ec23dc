// The core's users see what stands below it without naming it.
@_exported public import GatewayAudit
@_exported public import GatewaySupport
