// The unit in Verilog, with CFU-Playground's port: 16 accumulators, four multipliers for bytes and one
// for requantization. An instruction is answered a cycle after it, and one follows in each cycle.
module cfu (
    input             clk,
    input             reset,
    input             cmd_valid,
    output            cmd_ready,
    input      [ 9:0] cmd_payload_function_id,  // funct7, funct3
    input      [31:0] cmd_payload_inputs_0,
    input      [31:0] cmd_payload_inputs_1,
    output reg        rsp_valid,
    input             rsp_ready,
    output reg [31:0] rsp_payload_outputs_0
);
  localparam SET = 3'd0, DOT = 3'd1, LANES = 3'd2, REQUANTIZE = 3'd3;
  wire [2:0] what = cmd_payload_function_id[2:0];
  wire [3:0] i = cmd_payload_function_id[6:3];
  wire [31:0] a = cmd_payload_inputs_0, b = cmd_payload_inputs_1;

  reg [31:0] accumulator[0:15];
  wire signed [31:0] product[0:3];
  genvar j;
  for (j = 0; j < 4; j = j + 1) assign product[j] = $signed(a[8*j+:8]) * $signed(b[8*j+:8]);

  // as TFLM does: a doubling high multiplication, then a shift to the right that rounds ties away from zero
  wire signed [7:0] shift = b[7:0], zero_point = b[15:8], lowest = b[23:16], highest = b[31:24];
  wire [4:0] left = shift > 0 ? shift[4:0] : 5'd0, right = shift > 0 ? 5'd0 : -shift[4:0];
  wire signed [31:0] value = accumulator[i] << left;
  wire signed [63:0] doubled = (value * $signed(a) + (64'sd1 <<< 30)) >>> 31;
  wire signed [32:0] high = doubled > 64'sh7fffffff ? 33'sh7fffffff : doubled[32:0];
  wire [31:0] mask = (32'd1 << right) - 1, rest = high[31:0] & mask;
  wire rounds_up = rest > (mask >> 1) + high[32];
  wire signed [34:0] result = (high >>> right) + $signed({34'd0, rounds_up}) + zero_point;
  wire signed [34:0] below = result > highest ? highest : result;
  wire signed [34:0] clamped = below < lowest ? lowest : below;

  assign cmd_ready = !rsp_valid || rsp_ready;
  wire accepts = cmd_valid && cmd_ready;
  integer n;
  always @(posedge clk) begin
    if (reset) rsp_valid <= 0;
    else if (cmd_ready) rsp_valid <= cmd_valid;
    if (accepts) rsp_payload_outputs_0 <= what == REQUANTIZE ? clamped[31:0] : 0;
    if (reset) for (n = 0; n < 16; n = n + 1) accumulator[n] <= 0;
    else if (accepts)
      case (what)
        SET: accumulator[i] <= a;
        DOT: accumulator[i] <= accumulator[i] + product[0] + product[1] + product[2] + product[3];
        LANES: for (n = 0; n < 4; n = n + 1) accumulator[i+n[3:0]] <= accumulator[i+n[3:0]] + product[n];
        default: ;
      endcase
  end
endmodule
